"""Numbers and tables as aligned text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

from hashlearn.pages.formatting import ABSENT


def number(x: float, digits: int = 8, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with grouped thousands and at most ``digits`` significant digits; a dash if it is not finite.

    >>> number(11545.0), number(-0.25), number(float("inf")), number(12083.19500001, rounding="ROUND_CEILING")
    ('11,545', '-0.25', '–', '12,083.196')
    """
    if not math.isfinite(x):
        return ABSENT
    shown = Context(prec=digits, rounding=rounding).create_decimal(Decimal(x)).normalize()
    if shown and not -5 <= shown.adjusted() < 15:
        return f"{shown:e}"
    return f"{shown:,f}" if shown else "0"


def percent(fraction: float) -> str:
    """A fraction in per cent; a dash if it is not finite.

    >>> percent(0.0445), percent(3e-9), percent(0.0), percent(float("inf"))
    ('4.45 %', '3e-07 %', '0 %', '–')
    """
    return f"{100.0 * fraction:.3g} %" if math.isfinite(fraction) else ABSENT


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and texts in two aligned columns.

    >>> pairs([("cut", "4"), ("status", "optimal")])
    'cut     4\\nstatus  optimal'
    """
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with its first and last columns aligned left and the others, which hold numbers, right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    last = len(header) - 1

    def line(row: Sequence[str]) -> str:
        cells = [
            f"{cell:<{width}}" if column in (0, last) else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, rows)])
