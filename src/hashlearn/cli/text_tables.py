"""Numbers and pairs as aligned text."""

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
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(x)).normalize()
    if rounded and not -5 <= rounded.adjusted() < 15:
        return f"{rounded:e}"
    return f"{rounded:,f}" if rounded else "0"


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Names and texts in two aligned columns.

    >>> pairs([("cut", "4"), ("status", "optimal")])
    'cut     4\\nstatus  optimal'
    """
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)
