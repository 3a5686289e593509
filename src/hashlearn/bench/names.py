"""Names as people type them: any case, with or without "-", "_" and blanks; an unknown one is told the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def known_name(given: str, choices: Iterable[str], what: str) -> str:
    """The one of ``choices`` that ``given`` means, else a ValueError that suggests the nearest.

    >>> known_name("graph_cut", ["SDR", "GraphCut", "ITQ-CCA"], "method")
    'GraphCut'
    >>> known_name("GraphCat", ["SDR", "GraphCut", "ITQ-CCA"], "method")
    Traceback (most recent call last):
        ...
    ValueError: unknown method 'GraphCat'; did you mean 'GraphCut'? There are SDR, GraphCut, ITQ-CCA
    """
    by_plain = {_plain(choice): choice for choice in choices}
    if _plain(given) in by_plain:
        return by_plain[_plain(given)]
    near = difflib.get_close_matches(_plain(given), by_plain, n=1, cutoff=0.5)
    hint = f"; did you mean {by_plain[near[0]]!r}? There are " if near else "; there are "
    raise ValueError(f"unknown {what} {given!r}{hint}{', '.join(by_plain.values())}")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
