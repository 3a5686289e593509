"""Measured against published: the difference, and whether it is better, within the tolerance, or worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from hashlearn.experiments.report.model import METHODS, Block, Spread, in_order

PaperValue = Callable[[str, str, str, int], "float | None"]


class Verdict(Enum):
    """How a measured value stands to the paper's; each has a word and a sign, so that colour is never needed."""

    BETTER = "better"
    WITHIN = "within"
    WORSE = "worse"

    @property
    def sign(self) -> str:
        """One character for it."""
        return {"better": "▲", "within": "≈", "worse": "▼"}[self.value]


class Comparison(NamedTuple):
    """One entry of a table: what was measured, what the paper has, either of which may be absent."""

    method: str
    n_bits: int
    measured: Spread | None
    paper: float | None
    tolerance: float

    @property
    def difference(self) -> float | None:
        """Measured minus published, in points, to the two decimals that are printed."""
        if self.measured is None or self.paper is None:
            return None
        return round(self.measured.mean - self.paper, 2)

    @property
    def verdict(self) -> Verdict | None:
        """None where there is nothing to compare."""
        if self.difference is None:
            return None
        return verdict(self.difference, self.tolerance)


def verdict(difference: float, tolerance: float) -> Verdict:
    """Better or worse only beyond the tolerance.

    >>> [verdict(x, 1.0).value for x in (1.01, 1.0, -1.0, -1.01)]
    ['better', 'within', 'within', 'worse']
    """
    if difference > tolerance:
        return Verdict.BETTER
    return Verdict.WITHIN if difference >= -tolerance else Verdict.WORSE


def compare(block: Block, paper_value: PaperValue) -> dict[str, list[Comparison]]:
    """For each method, measured here or in the paper, one comparison a code length."""
    rows = {}
    for method in in_order({*METHODS, *block.methods}, METHODS):
        row = [
            Comparison(
                method,
                n_bits,
                block.score(method, n_bits),
                paper_value(block.table.name, block.dataset, method, n_bits),
                block.table.tolerance,
            )
            for n_bits in block.lengths
        ]
        if method in block.methods or any(entry.paper is not None for entry in row):
            rows[method] = row
    return rows


def tally(rows: Mapping[str, list[Comparison]]) -> Counter[Verdict]:
    """How many entries are better, within and worse."""
    return Counter(entry.verdict for row in rows.values() for entry in row if entry.verdict is not None)
