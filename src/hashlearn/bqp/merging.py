"""Identical rows of P are one variable: an exact presolve for low-rank problems.

Samples with equal rows p of P enter xᵀAx only through the sum of their signs. If pᵀWp ≤ 0 the value is concave in that
sum, so an optimum has all their signs equal, and the same holds for the unit vectors of the relaxation (10): m equal
rows become one row m·p, and value, optimum and SDP bound stay what they were. Both settings of the paper have
A_ii = −1. Groups with pᵀWp > 0 are left alone. One pass over P and a sort of n hashes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.operators import FloatArray, LowRank, Operator
from hashlearn.bqp.threads import map_row_blocks

# Merging fewer than this fraction of the rows away is not worth a copy of P.
WORTHWHILE = 0.05
# A large P is hashed whole only if so many of its rows, evenly spaced, show a repeat.
LOOK_AT_FIRST = 10_000
# Rows that differ in their last columns differ: of a wide P only these are hashed at first.
LOOK_AT_COLUMNS = 32


@dataclass(frozen=True, eq=False)
class Merged:
    """A smaller problem with the same optimum, and the way back."""

    operator: Operator
    groups: NDArray[np.intp] | None  # groups[i]: the variable of ``operator`` that stands for variable i

    def expand(self, x: FloatArray) -> FloatArray:
        """Signs (or unit rows) of the original variables from those of the merged ones."""
        return x if self.groups is None else x[self.groups]

    def collapse(self, x: FloatArray) -> FloatArray:
        """Signs of the merged variables: the sign of each group's sum, + for a tie. Never raises xᵀAx by itself
        when groups agree."""
        if self.groups is None:
            return x
        total = np.bincount(self.groups, weights=x, minlength=self.operator.n)
        return np.where(total < 0.0, -1.0, 1.0)


def merge_identical_rows(A: Operator, worthwhile: float = WORTHWHILE) -> Merged:
    """Merge what can be merged exactly; other kinds of operator, and too few repeats, come back unchanged.

    Too few: less than the fraction ``worthwhile`` of the rows would go.

    >>> merged = merge_identical_rows(LowRank([[1.0], [1.0], [2.0]], [-1.0]))
    >>> merged.operator.P.ravel(), merged.groups
    (array([2., 2.]), array([0, 0, 1]))
    """
    if not isinstance(A, LowRank) or A.rank == 0:
        return Merged(A, None)
    if worthwhile > 0.0 and A.n > 10 * LOOK_AT_FIRST:
        some = _hash_rows(A.P[:: A.n // LOOK_AT_FIRST])
        if len(np.unique(some)) == len(some):
            return Merged(A, None)
    if A.rank > 2 * LOOK_AT_COLUMNS:
        few = np.ascontiguousarray(A.P[:, -LOOK_AT_COLUMNS:])
        if len(np.unique(_hash_rows(few))) > (1.0 - worthwhile) * A.n:
            return Merged(A, None)
    hashes = np.concatenate(map_row_blocks(lambda a, b: _hash_rows(A.P[a:b]), A.n, A.rank))
    _, first, groups = np.unique(hashes, return_index=True, return_inverse=True)
    if len(first) > (1.0 - worthwhile) * A.n:
        return Merged(A, None)
    first, groups = _in_order_of_appearance(first, groups)
    alone = _not_mergeable(A, first, groups)
    if alone.any():
        groups = groups.copy()
        groups[alone] = len(first) + np.arange(alone.sum())
        _, first, groups = np.unique(groups, return_index=True, return_inverse=True)
        first, groups = _in_order_of_appearance(first, groups)
    counts = np.bincount(groups, minlength=len(first))
    small = LowRank(A.P[first] * counts[:, None], A.weights)
    return Merged(small, groups)


def _in_order_of_appearance(
    first: NDArray[np.intp], groups: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[groups]


def _not_mergeable(A: LowRank, first: NDArray[np.intp], groups: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Rows that differ from their group's first row (a hash collision), or whose diagonal entry is positive."""
    P, weights = A.P, A.weights

    def check(a: int, b: int) -> NDArray[np.bool_]:
        rows = P[a:b]
        differs = (rows != P[first[groups[a:b]]]).any(axis=1)
        return differs | ((rows * rows) @ weights > 0.0)

    return np.concatenate(map_row_blocks(check, A.n, A.rank))


@njit(cache=True, nogil=True)
def _hash_rows(P):  # type: ignore[no-untyped-def]
    """64-bit hash of the bits of each row; −0.0 hashes as 0.0."""
    n, rank = P.shape
    out = np.empty(n, np.uint64)
    scratch = np.empty(1)
    bits = scratch.view(np.uint64)
    for i in range(n):
        h = np.uint64(14695981039346656037)
        for j in range(rank):
            scratch[0] = P[i, j] + 0.0
            h = (h ^ bits[0]) * np.uint64(1099511628211)
            h ^= h >> np.uint64(29)
        out[i] = h
    return out
