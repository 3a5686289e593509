"""Names as people type them: any case, with or without "-", "_" and blanks; an unknown one is told the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

CLOSE = 0.5  # similarity from which a name is worth suggesting


def did_you_mean(name: object, choices: Iterable[str]) -> str:
    """The end of an error message: ``; did you mean 'sdr'?``, or nothing if no choice is close.

    >>> did_you_mean("srd", ["sdr", "al"])
    "; did you mean 'sdr'?"
    >>> did_you_mean("simplex", ["sdr", "al"])
    ''
    """
    by_plain = {_plain(choice): choice for choice in choices}
    near = difflib.get_close_matches(_plain(str(name)), by_plain, n=1, cutoff=CLOSE)
    return f"; did you mean {by_plain[near[0]]!r}?" if near else ""


def require_choice(value: object, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of ``choices``.

    >>> require_choice("plian", "ties", ["plain", "tie_aware"])
    Traceback (most recent call last):
        ...
    ValueError: ties must be one of 'plain', 'tie_aware', got 'plian'; did you mean 'plain'?
    """
    if not (isinstance(value, str) and value in choices):
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {known}, got {value!r}{did_you_mean(value, choices)}")


def is_automatic(value: object) -> bool:
    """Whether a parameter leaves the choice to us.

    >>> is_automatic("auto"), is_automatic(3)
    (True, False)
    """
    return isinstance(value, str) and value == "auto"


def known_name(name: str, choices: Iterable[str], what: str) -> str:
    """The one of ``choices`` that ``name`` means, else a ValueError that suggests the nearest.

    >>> known_name("graph_cut", ["SDR", "GraphCut", "ITQ-CCA"], "method")
    'GraphCut'
    >>> known_name("GraphCat", ["SDR", "GraphCut", "ITQ-CCA"], "method")
    Traceback (most recent call last):
        ...
    ValueError: unknown method 'GraphCat'; did you mean 'GraphCut'? There are SDR, GraphCut, ITQ-CCA
    """
    by_plain = {_plain(choice): choice for choice in choices}
    if _plain(name) in by_plain:
        return by_plain[_plain(name)]
    hint = did_you_mean(name, by_plain.values())
    raise ValueError(
        f"unknown {what} {name!r}{hint or ';'} {'T' if hint else 't'}here are {', '.join(by_plain.values())}"
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
