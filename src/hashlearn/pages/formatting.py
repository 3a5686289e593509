"""Numbers, lists and tables of text as readers see them: real minus signs, SI suffixes, plurals."""

from __future__ import annotations

import math
from collections.abc import Sequence

ABSENT = "–"  # shown in place of a value that does not exist
MOST_LETTERS = 160  # of a text on a page
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
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


def percent(share: float, digits: int = 10) -> str:
    """A share in per cent; a dash if it is not finite.

    >>> percent(0.95), percent(0.91234, 3), percent(3e-9), percent(float("inf"))
    ('95 %', '91.2 %', '3e-07 %', '–')
    """
    return f"{100.0 * share:.{digits}g} %" if math.isfinite(share) else ABSENT


def at_least(bound: float, decimals: int = 3) -> str:
    """A lower bound in per cent, rounded down so that it stays one.

    >>> at_least(0.91199), at_least(0.95), at_least(0.999_961, 6)
    ('91.1 %', '95 %', '99.9961 %')
    """
    return percent(rounded_down(bound, decimals))


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


def byte_size(size: float) -> str:
    """Bytes in the largest fitting unit.

    >>> byte_size(640), byte_size(16_000_000), byte_size(1_536 * 10**8)
    ('640 bytes', '15.3 MiB', '143 GiB')
    """
    power = 0
    while size >= 999.5 and power + 1 < len(_UNITS):
        size, power = size / 1024.0, power + 1
    return f"{size:.3g} {_UNITS[power]}"


def cut(text: object) -> str:
    """A text on one line of at most `MOST_LETTERS` letters that UTF-8 can hold.

    >>> cut("two\\n lines"), len(cut("x" * 500))
    ('two lines', 160)
    """
    whole = " ".join(str(text).split()).encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= MOST_LETTERS else whole[: MOST_LETTERS - 1].rstrip() + "…"


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


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with columns that hold a number aligned right, but for the first, and the others left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    sides = ["<", *(">" if any(cell[:1].isdigit() for cell in cells) else "<" for _, *cells in columns[1:])]

    def line(row: Sequence[str]) -> str:
        return "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, rows)])
