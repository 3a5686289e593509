"""Numbers and lists as readers see them: real minus signs, SI suffixes, plurals."""

from __future__ import annotations

import math
from collections.abc import Sequence

ABSENT = "–"  # shown in place of a value that does not exist
_SUFFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def in_sentence(title: str) -> str:
    """A title inside a sentence.

    >>> in_sentence("Binary inference"), in_sentence("k-NN classification")
    ('binary inference', 'k-NN classification')
    """
    return title[:1].lower() + title[1:]


def rounded_down(share: float, decimals: int) -> float:
    """A lower bound as it is shown, so that "at least" stays true.

    >>> rounded_down(0.91199, 3), rounded_down(0.95, 3)
    (0.911, 0.95)
    """
    scale = 10.0**decimals
    return math.floor(scale * share + 1e-6) / scale


def fixed(x: float | None, decimals: int = 2) -> str:
    """A number with a fixed count of decimals, a dash if there is none.

    >>> fixed(93.857), fixed(-0.5, 1), fixed(None), fixed(-0.001)
    ('93.86', '−0.5', '–', '0.00')
    """
    if x is None or not math.isfinite(x):
        return ABSENT
    rounded = round(x, decimals) + 0.0  # no negative zero
    return f"{rounded:.{decimals}f}".replace("-", "−")


def signed(x: float, decimals: int = 2) -> str:
    """The same with its sign always shown.

    >>> signed(0.08), signed(-1.5), signed(0.0)
    ('+0.08', '−1.50', '0.00')
    """
    text = fixed(x, decimals)
    return f"+{text}" if round(x, decimals) > 0 else text


def compact(x: float) -> str:
    """Three or four digits, with k, M and G for large numbers.

    >>> compact(-12_500_000), compact(0.25), compact(1500), compact(3e-6), compact(0)
    ('−12.5M', '0.25', '1.5k', '3e−06', '0')
    """
    for size, suffix in _SUFFIXES:
        if abs(x) >= size:
            return f"{x / size:.4g}{suffix}".replace("-", "−")
    return f"{x:.4g}".replace("-", "−")


def seconds(duration: float | None) -> str:
    """A duration with about three digits.

    >>> seconds(0.0312), seconds(0.96), seconds(12.34), seconds(1234.0), seconds(None)
    ('0.031', '0.96', '12.3', '1,234', '–')
    """
    if duration is None or not math.isfinite(duration):
        return ABSENT
    decimals = 3 if duration < 0.1 else 2 if duration < 10.0 else 1 if duration < 100.0 else 0
    return f"{duration:,.{decimals}f}"


def counted(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> counted(1, "draw"), counted(3, "draw"), counted(2, "query", "queries")
    ('1 draw', '3 draws', '2 queries')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(items: Sequence[str]) -> str:
    """Items in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
