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

from hashlearn.core.arrays import FloatArray

WIDEST = 7
FOUND = 100_000  # violated triangles that one search keeps


@dataclass(frozen=True, eq=False)
class Cuts:
    """Cuts of one problem and their multipliers γ ≥ 0."""

    members: NDArray[np.int32]
    gamma: FloatArray

    @classmethod
    def none(cls) -> Cuts:
        """No cuts."""
        return cls(np.zeros((0, WIDEST), np.int32), np.zeros(0))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of entries of each b."""
        return np.count_nonzero(self.members, axis=1)

    def kept(self, which: NDArray[np.bool_]) -> Cuts:
        """Those that ``which`` marks."""
        return Cuts(self.members[which], self.gamma[which])

    def extended(self, members: NDArray[np.int32]) -> Cuts:
        """These and more, with multiplier 0."""
        return Cuts(np.vstack([self.members, members]), np.concatenate([self.gamma, np.zeros(len(members))]))

    def with_gamma(self, gamma: FloatArray) -> Cuts:
        """The same cuts with other multipliers."""
        return Cuts(self.members, gamma)

    def merged(self, i: int, j: int, sign: int) -> Cuts:
        """The cuts after x_j = sign · x_i, with j removed. Cuts that hold both i and j are dropped."""
        position = np.abs(self.members)
        has_i, has_j = (position == i + 1).any(axis=1), (position == j + 1).any(axis=1)
        here = self.kept(~(has_i & has_j))
        position, signs = np.abs(here.members), np.sign(here.members)
        moved = position == j + 1
        position = np.where(moved, i + 1, position)
        signs = np.where(moved, sign * signs, signs)
        position = np.where(position > j + 1, position - 1, position)
        members = canonical((signs * position).astype(np.int32))
        distinct, place = np.unique(members, axis=0, return_inverse=True)
        gamma = np.zeros(len(distinct))
        np.add.at(gamma, place.ravel(), here.gamma)
        return Cuts(distinct, gamma)


def violated(X: FloatArray, known: Cuts, widest: int, least: float, most: int) -> NDArray[np.int32]:
    """New cuts that X violates by more than ``least``: at most ``most`` of each size, the most violated first."""
    seen = {row.tobytes() for row in known.members}
    found = [_chosen(*_triangles(X, least), seen, most)]
    for size in range(3, widest - 1, 2):
        active = known.kept((known.sizes == size) & (known.gamma > 0.0))
        base = active.members[np.argsort(-active.gamma, kind="stable")[: 2 * most]]
        if size == 3 and not len(base):
            base = _chosen(*_triangles(X, -1.0), set(), most)
        found.append(_chosen(*_grown(X, base, size, least), seen, most))
    return np.vstack(found)


def canonical(members: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sorted by position, the first entry positive: b and −b are the same cut."""
    position = np.where(members == 0, np.iinfo(np.int32).max, np.abs(members))
    order = np.argsort(position, axis=1, kind="stable")
    members = np.take_along_axis(members, order, axis=1)
    return np.ascontiguousarray(members * np.where(members[:, :1] < 0, -1, 1), dtype=np.int32)


def _chosen(members: NDArray[np.int32], violations: FloatArray, seen: set[bytes], most: int) -> NDArray[np.int32]:
    """The most violated ones that are not yet seen; they are added to ``seen``."""
    order = np.argsort(-violations, kind="stable")[: 3 * most]
    members = canonical(members[order])
    chosen = []
    for k, row in enumerate(members):
        name = row.tobytes()
        if name not in seen:
            seen.add(name)
            chosen.append(k)
            if len(chosen) == most:
                break
    return members[chosen]


def _triangles(X: FloatArray, least: float) -> tuple[NDArray[np.int32], FloatArray]:
    members, violations = np.zeros((FOUND, WIDEST), np.int32), np.empty(FOUND)
    count = _search_triangles(X, least, members, violations)
    return members[:count], violations[:count]


@njit(cache=True, nogil=True)
def _search_triangles(X, least, members, violations):  # type: ignore[no-untyped-def]
    """Violated triangles, until the arrays are full; returns their number."""
    limit = -1.0 - 0.5 * least
    count = 0
    for i in range(len(X)):
        for j in range(i):
            a = X[i, j]
            for k in range(j):
                b, c = X[i, k], X[j, k]
                # At most one of the four can be violated, because two of them add up to at least −2.
                if a + b + c < limit:
                    total, s, t = a + b + c, 1, 1
                elif a - b - c < limit:
                    total, s, t = a - b - c, 1, -1
                elif b - a - c < limit:
                    total, s, t = b - a - c, -1, 1
                elif c - a - b < limit:
                    total, s, t = c - a - b, -1, -1
                else:
                    continue
                members[count, 0], members[count, 1], members[count, 2] = i + 1, s * (j + 1), t * (k + 1)
                violations[count] = -2.0 * (total + 1.0)
                count += 1
                if count == len(violations):
                    return count
    return count


def _grown(X: FloatArray, members: NDArray[np.int32], size: int, least: float) -> tuple[NDArray[np.int32], FloatArray]:
    grown, violations = members.copy(), np.zeros(len(members))
    _add_two(X, grown, violations, size)
    better = violations > least
    return grown[better], violations[better]


@njit(cache=True, nogil=True)
def _add_two(X, members, violations, size):  # type: ignore[no-untyped-def]
    """Add the two entries that make bᵀXb smallest to each cut, and write by how much it is then violated."""
    m = len(X)
    product, inside = np.empty(m), np.empty(m, np.bool_)
    for t in range(len(members)):
        product[:] = 0.0
        inside[:] = False
        for p in range(size):
            i = abs(members[t, p]) - 1
            inside[i] = True
            product += X[i] if members[t, p] > 0 else -X[i]
        square = 0.0
        for p in range(size):
            i = abs(members[t, p]) - 1
            square += product[i] if members[t, p] > 0 else -product[i]
        least, first, second = np.inf, -1, -1
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
        if first < 0:
            continue
        along = product[first - 1] + (product[second - 1] if second > 0 else -product[-second - 1])
        turn = -1 if along > 0.0 else 1
        members[t, size], members[t, size + 1] = turn * first, turn * second
        violations[t] = 1.0 - (square + 2.0 + 2.0 * least)
