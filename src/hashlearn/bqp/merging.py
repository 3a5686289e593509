"""Identical rows of P become one variable: an exact presolve for low-rank problems.

Samples with equal rows p of P enter xᵀAx only through the sum of their signs. If pᵀWp ≤ 0, the value is concave in that
sum, so some optimum gives all of them the same sign. The same holds for the unit vectors of the relaxation (10). So m
equal rows become one row m·p, and value, optimum and SDP bound do not change. Both settings of the paper have
A_ii = −1. Groups with pᵀWp > 0, or so near 0 that rounding leaves the sign open, are not merged. The cost is one pass
over P and a sort of n hashes.

A problem that is small after merging is copied to the host, because a device does not speed up a few rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.rows import Rows, TallArray
from hashlearn.core.thresholds import HOST_ROWS

# A copy of P pays only if merging removes at least this fraction of the rows.
WORTHWHILE = 0.05


@dataclass(frozen=True, eq=False)
class Merged:
    """A smaller problem with the same optimum, and the maps between the variables of both."""

    operator: Operator
    groups: TallArray | None  # groups[i]: the variable of ``operator`` that stands for variable i
    origin: Rows | None = None  # the rows on a device, if ``operator`` was copied to the host

    def expand(self, x: TallArray) -> TallArray:
        """Signs (or unit rows) of the original variables from those of the merged ones."""
        if self.origin is not None:
            x = self.origin.from_numpy(x)
        return x if self.groups is None else x[self.groups]

    def collapse(self, x: TallArray) -> TallArray:
        """Signs of the merged variables: the sign of each group's sum, +1 for a tie."""
        if self.groups is not None:
            tall = self.operator.backend if self.origin is None else self.origin
            x = tall.group_signs(x, self.groups, self.operator.n)
        return x if self.origin is None else self.origin.to_numpy(x)


def merge_identical_rows(A: Operator, worthwhile: float = WORTHWHILE) -> Merged:
    """Merge what can be merged exactly. Operators of other kinds come back unchanged.

    So does a low-rank A if merging would remove less than the fraction ``worthwhile`` of its rows.

    >>> merged = merge_identical_rows(LowRank([[1.0], [1.0], [2.0]], [-1.0]))
    >>> merged.operator.P.ravel(), merged.groups
    (array([2., 2.]), array([0, 0, 1]))
    """
    if not A.is_low_rank or A.rank == 0:
        return Merged(A, None)
    found = A.rows.merged(A.weights, worthwhile)
    rows, groups = (A.rows, None) if found is None else found
    if rows.n <= HOST_ROWS and not rows.on_host:
        return Merged(LowRank(rows.to_host(), A.weights), groups, A.rows)
    return Merged(A, None) if groups is None else Merged(LowRank(rows, A.weights), groups)
