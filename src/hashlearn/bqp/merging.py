"""Identical rows of P are one variable: an exact presolve for low-rank problems.

Samples with equal rows p of P enter xᵀAx only through the sum of their signs. If pᵀWp ≤ 0 the value is concave in that
sum, so an optimum has all their signs equal, and the same holds for the unit vectors of the relaxation (10): m equal
rows become one row m·p, and value, optimum and SDP bound stay what they were. Both settings of the paper have
A_ii = −1. Groups with pᵀWp > 0, or so near 0 that rounding leaves it open, are left alone. One pass over P and a sort
of n hashes.

What is small afterwards comes to the host, whatever kind of rows it was: a few rows are no work for a device.
"""

from __future__ import annotations

from dataclasses import dataclass

from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.rows import Rows, Tall
from hashlearn.bqp.rows.interface import TallArray
from hashlearn.bqp.rows.numpy_merging import HOST_ROWS

# Merging fewer than this fraction of the rows away is not worth a copy of P.
WORTHWHILE = 0.05


@dataclass(frozen=True, eq=False)
class Merged:
    """A smaller problem with the same optimum, and the way back."""

    operator: Operator
    groups: TallArray | None  # groups[i]: the variable of ``operator`` that stands for variable i
    origin: Rows | None = None  # the rows that ``operator`` has in place of these on the host

    def expand(self, x: TallArray) -> TallArray:
        """Signs (or unit rows) of the original variables from those of the merged ones."""
        if self.origin is not None:
            x = self.origin.from_numpy(x)
        return x if self.groups is None else self._tall.spread(x, self.groups)

    def collapse(self, x: TallArray) -> TallArray:
        """Signs of the merged variables: the sign of each group's sum, + for a tie. Never raises xᵀAx by itself
        when groups agree."""
        if self.groups is not None:
            x = self._tall.group_signs(x, self.groups, self.operator.n)
        return x if self.origin is None else self.origin.to_numpy(x)

    @property
    def _tall(self) -> Tall:
        return self.operator.tall if self.origin is None else self.origin


def merge_identical_rows(A: Operator, worthwhile: float = WORTHWHILE) -> Merged:
    """Merge what can be merged exactly; other kinds of operator, and too few repeats, come back unchanged.

    Too few: less than the fraction ``worthwhile`` of the rows would go.

    >>> merged = merge_identical_rows(LowRank([[1.0], [1.0], [2.0]], [-1.0]))
    >>> merged.operator.P.ravel(), merged.groups
    (array([2., 2.]), array([0, 0, 1]))
    """
    if not isinstance(A, LowRank) or A.rank == 0:
        return Merged(A, None)
    found = A.rows.merged(A.weights, worthwhile)
    rows, groups = (A.rows, None) if found is None else found
    if rows.n <= HOST_ROWS and not rows.on_host:
        return Merged(LowRank(rows.to_host(), A.weights), groups, A.rows)
    return Merged(A, None) if groups is None else Merged(LowRank(rows.P, A.weights), groups)
