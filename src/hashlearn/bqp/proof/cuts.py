"""Cuts that tighten the relaxation, and the search for violated ones.

For b with an odd number of entries ±1, and 0 elsewhere, bᵀx is odd, so (bᵀx)² ≥ 1. With X for xxᵀ the cut is

    bᵀXb ≥ 1.

Three entries give the triangle inequalities: X_ij + X_ik + X_jk ≥ −1 and its three sign variants. Five and seven
entries give pentagonal and heptagonal inequalities. All triangles are enumerated, O(m³) and 1 ms at m = 100. Larger
cuts grow from cuts with positive multipliers: the best two entries are added, O(m²) for each. Where no triangle has
one, they grow from the triangles that are closest to being violated.

A cut is stored as signed positions from 1 on, sorted, the first one positive, with zeros behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.proof.lagrangian import violations, weighted
from hashlearn.core.arrays import FloatArray

WIDEST = 7
MOST_TRIANGLES = 100_000  # violated ones that one search returns
Members = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Cuts of one problem and their multipliers γ ≥ 0."""

    members: Members
    gamma: FloatArray

    @classmethod
    def none(cls) -> Cuts:
        """No cuts."""
        return cls(np.zeros((0, WIDEST), np.int32), np.zeros(0))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of entries of each b."""
        return np.count_nonzero(self.members, axis=1)

    def __getitem__(self, which: NDArray[np.bool_]) -> Cuts:
        return Cuts(self.members[which], self.gamma[which])

    def extended(self, members: Members) -> Cuts:
        """These and more, with multiplier 0."""
        return Cuts(np.vstack([self.members, members]), np.append(self.gamma, np.zeros(len(members))))

    def merged(self, i: int, j: int, sign: int) -> Cuts:
        """The cuts after x_j = sign · x_i, with j removed. Cuts that hold both i and j are dropped."""
        position = np.abs(self.members)
        here = self[~((position == i + 1).any(axis=1) & (position == j + 1).any(axis=1))]
        position, signs = np.abs(here.members), np.sign(here.members)
        moved = position == j + 1
        position = np.where(moved, i + 1, position - (position > j + 1))
        members = _canonical((np.where(moved, sign * signs, signs) * position).astype(np.int32))
        distinct, place = np.unique(members, axis=0, return_inverse=True)
        gamma = np.bincount(place.ravel(), here.gamma, minlength=len(distinct)).astype(np.float64)
        return Cuts(distinct, gamma)

    def violations(self, X: FloatArray) -> FloatArray:
        """1 − bᵀXb for each cut, positive if it is violated."""
        return violations(X, self.members)

    def subtracted_from(self, C: FloatArray) -> FloatArray:
        """M = C − Σ γ bbᵀ without the diagonals of bbᵀ."""
        return weighted(C, self.members, self.gamma)


def separate(X: FloatArray, known: Cuts, widest: int, least: float, most: int) -> Members:
    """New cuts that X violates by more than ``least``: at most ``most`` of each size, the most violated first."""
    seen = {row.tobytes() for row in known.members}
    triangles, violations = _triangles(X, least)
    new = [_most_violated(triangles, violations, seen, most)]
    for size in range(3, widest - 1, 2):
        active = known[(known.sizes == size) & (known.gamma > 0.0)]
        base = active.members[np.argsort(-active.gamma, kind="stable")[: 2 * most]]
        if size == 3 and not len(base):
            triangles, violations = _triangles(X, -1.0)
            base = _most_violated(triangles, violations, set(), most)
        wider, violations = _add_two(X, base, size)
        new.append(_most_violated(wider[violations > least], violations[violations > least], seen, most))
    return np.vstack(new)


def _canonical(members: Members) -> Members:
    """Sorted by position, the first entry positive: b and −b are the same cut."""
    position = np.where(members == 0, np.iinfo(np.int32).max, np.abs(members))
    members = np.take_along_axis(members, np.argsort(position, axis=1, kind="stable"), axis=1)
    return np.ascontiguousarray(members * np.where(members[:, :1] < 0, -1, 1), dtype=np.int32)


def _most_violated(members: Members, violations: FloatArray, seen: set[bytes], most: int) -> Members:
    """The most violated ones that are not in ``seen``, to which they are added."""
    members = _canonical(members[np.argsort(-violations, kind="stable")[: 3 * most]])
    new = {row.tobytes(): k for k, row in enumerate(members) if row.tobytes() not in seen}
    places = list(new.items())[:most]
    seen.update(name for name, _ in places)
    return members[[k for _, k in places]]


@njit(cache=True, nogil=True)
def _triangles(X, least):  # type: ignore[no-untyped-def]
    """Triangles that are violated by more than ``least``, up to `MOST_TRIANGLES`, and by how much."""
    members, violations = np.zeros((MOST_TRIANGLES, WIDEST), np.int32), np.empty(MOST_TRIANGLES)
    limit = -1.0 - 0.5 * least
    count = 0
    for i in range(len(X)):
        for j in range(i):
            for k in range(j):
                a, b, c = X[i, j], X[i, k], X[j, k]
                # At most one of the four can be violated, because two of them add up to at least −2.
                total, s, t = a + b + c, 1, 1
                if a - b - c < total:
                    total, s, t = a - b - c, 1, -1
                if b - a - c < total:
                    total, s, t = b - a - c, -1, 1
                if c - a - b < total:
                    total, s, t = c - a - b, -1, -1
                if total < limit and count < MOST_TRIANGLES:
                    members[count, 0], members[count, 1], members[count, 2] = i + 1, s * (j + 1), t * (k + 1)
                    violations[count] = -2.0 * (total + 1.0)
                    count += 1
    return members[:count], violations[:count]


@njit(cache=True, nogil=True)
def _add_two(X, members, size):  # type: ignore[no-untyped-def]
    """Cuts with the two more entries that make bᵀXb smallest, and by how much they are then violated."""
    m = len(X)
    wider, violations = members.copy(), np.zeros(len(members))
    product, inside = np.empty(m), np.empty(m, np.bool_)
    for t in range(len(members)):
        product[:], inside[:] = 0.0, False
        for v in members[t, :size]:
            inside[abs(v) - 1] = True
            product += X[abs(v) - 1] if v > 0 else -X[abs(v) - 1]
        square = 0.0
        for v in members[t, :size]:
            square += product[v - 1] if v > 0 else -product[-v - 1]
        least, first, second = np.inf, 0, 0
        for k in range(m):
            if inside[k]:
                continue
            for l in range(k):
                if inside[l]:
                    continue
                equal = X[k, l] - abs(product[k] + product[l])
                opposite = -X[k, l] - abs(product[k] - product[l])
                if equal < least:
                    least, first, second = equal, k + 1, l + 1
                if opposite < least:
                    least, first, second = opposite, k + 1, -(l + 1)
        if first > 0:
            along = product[first - 1] + (product[second - 1] if second > 0 else -product[-second - 1])
            turn = -1 if along > 0.0 else 1
            wider[t, size], wider[t, size + 1] = turn * first, turn * second
            violations[t] = 1.0 - (square + 2.0 + 2.0 * least)
    return wider, violations
