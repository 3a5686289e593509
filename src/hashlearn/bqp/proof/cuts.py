"""Cuts that tighten the relaxation, the search for violated ones, and the relaxation with cuts in factored form.

For b with an odd number of entries ±1, and 0 elsewhere, bᵀx is odd, so (bᵀx)² ≥ 1. With X for xxᵀ the cut is

    bᵀXb ≥ 1.

Three entries give the triangle inequalities: X_ij + X_ik + X_jk ≥ −1 and its three sign variants. Five and seven
entries give pentagonal and heptagonal inequalities. All triangles are enumerated, O(m³) and 1 ms at m = 100. Larger
cuts grow from cuts with positive multipliers: the best two entries are added, O(m²) for each. Where no triangle has
one, they grow from the triangles that are closest to being violated.

A cut is stored as signed positions from 1 on, sorted, the first one positive, with zeros behind.

The relaxation with cuts is solved in factored form: X = VVᵀ with unit rows in V. Its augmented Lagrangian is

    <C, X> + Σ_t (w_t² − γ_t²) / 2σ  with  w_t = max(0, γ_t + σ (1 − b_tᵀXb_t)),

and its gradient is 2 M V, projected to the spheres of the rows, with M = C − Σ w_t b_t b_tᵀ. Diagonals are left out of
C and of b bᵀ, since diag X = 1. At a minimum, w are the new multipliers and M − Diag(y) ⪰ 0 for y_i = v_iᵀ(MV)_i.

An evaluation costs two products of m × m and m × rank and a pass over the cuts: 0.2 ms at m = 100, rank 40 and 2,000
cuts. An eigendecomposition of that size, which dual methods need for each step, takes 1.4 ms. So the factored form is
used, and only the dual point at the end of a round needs an eigendecomposition. At these sizes a step in Python would
take as long as its evaluation, so the whole minimization is compiled (SciPy's L-BFGS-B takes twice as long).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.flips import dot
from hashlearn.core.arrays import FloatArray

WIDEST = 7
MOST_TRIANGLES = 100_000  # violated ones that one search returns
Members = NDArray[np.int32]
PAIRS = 8  # of steps and gradient changes that L-BFGS keeps
TRIALS = 25  # step lengths that a line search tries


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


@njit(cache=True, nogil=True)
def minimize(C, V, members, gamma, sigma, tolerance, max_iter):  # type: ignore[no-untyped-def]
    """Change V until the gradient's norm is at most ``tolerance``. Returns the value and X = VVᵀ."""
    steps, changes = np.empty((PAIRS, V.size)), np.empty((PAIRS, V.size))
    inverse, stored = np.zeros(PAIRS), 0
    X, M, V_new, G, G_new = np.empty_like(C), np.empty_like(C), np.empty_like(V), np.empty_like(V), np.empty_like(V)
    v, v_new, g, g_new = V.reshape(-1), V_new.reshape(-1), G.reshape(-1), G_new.reshape(-1)
    value = _evaluate(C, V, members, gamma, sigma, X, M, G)
    for _ in range(max_iter):
        norm = np.sqrt(dot(g, g))
        if norm <= tolerance:
            break
        direction = _direction(g, steps, changes, inverse, stored)
        slope = dot(g, direction)
        if not slope < 0.0:
            direction, slope, stored = -g, -norm * norm, 0
        length = 1.0 if stored else min(1.0, 0.3 * np.sqrt(len(V)) / norm)
        falls = False
        for _ in range(TRIALS):
            v_new[:] = v + length * direction
            for i in range(len(V)):
                V_new[i] /= np.sqrt(dot(V_new[i], V_new[i]))
            value_new = _evaluate(C, V_new, members, gamma, sigma, X, M, G_new)
            falls = value_new <= value + 1e-4 * length * slope
            if falls:
                break
            least = -0.5 * slope * length * length / (value_new - value - slope * length)
            length = min(max(least, 0.1 * length), 0.5 * length)
        if not falls:
            break
        k = stored % PAIRS
        steps[k], changes[k] = v_new - v, g_new - g
        v[:], g[:], value = v_new, g_new, value_new
        curvature = dot(steps[k], changes[k])
        if curvature > 1e-12 * np.sqrt(dot(steps[k], steps[k]) * dot(changes[k], changes[k])):
            inverse[k] = 1.0 / curvature
            stored += 1
    return _evaluate(C, V, members, gamma, sigma, X, M, G), X


@njit(cache=True, nogil=True)
def violations(X, members):  # type: ignore[no-untyped-def]
    """1 − bᵀXb for each cut, positive if it is violated."""
    result = np.empty(len(members))
    for t in range(len(members)):
        result[t] = _violation(X, members[t])
    return result


@njit(cache=True, nogil=True)
def weighted(C, members, w):  # type: ignore[no-untyped-def]
    """M = C − Σ w_t b_t b_tᵀ without the diagonals of the cuts."""
    M = C.copy()
    for t in range(len(members)):
        _subtract(M, members[t], w[t])
    return M


@njit(cache=True, nogil=True)
def _evaluate(C, V, members, gamma, sigma, X, M, G):  # type: ignore[no-untyped-def]
    """The value; X, M and the projected gradient G are written."""
    np.dot(V, V.T, X)
    value = 0.0
    for i in range(len(C)):
        for j in range(len(C)):
            value += C[i, j] * X[i, j]
            M[i, j] = C[i, j]
    for t in range(len(gamma)):
        w = gamma[t] + sigma * _violation(X, members[t])
        value -= gamma[t] * gamma[t] / (2.0 * sigma)
        if w > 0.0:
            value += w * w / (2.0 * sigma)
            _subtract(M, members[t], w)
    np.dot(M, V, G)
    for i in range(len(V)):
        along = 0.0
        for c in range(V.shape[1]):
            along += G[i, c] * V[i, c]
        for c in range(V.shape[1]):
            G[i, c] = 2.0 * (G[i, c] - along * V[i, c])
    return value


@njit(cache=True, nogil=True)
def _direction(g, steps, changes, inverse, stored):  # type: ignore[no-untyped-def]
    """−H g by the two-loop recursion of L-BFGS (Nocedal and Wright 2006, Algorithm 7.4)."""
    direction, weights = -g, np.zeros(PAIRS)
    first = max(0, stored - PAIRS)
    for pair in range(stored - 1, first - 1, -1):
        k = pair % PAIRS
        weights[k] = inverse[k] * dot(steps[k], direction)
        direction -= weights[k] * changes[k]
    if stored:
        k = (stored - 1) % PAIRS
        direction /= inverse[k] * dot(changes[k], changes[k])
    for pair in range(first, stored):
        k = pair % PAIRS
        direction += (weights[k] - inverse[k] * dot(changes[k], direction)) * steps[k]
    return direction


# Kernels of another file are not inlined when they come from Numba's cache, so these two stay beside their callers.


@njit(cache=True, nogil=True)
def _violation(X, cut):  # type: ignore[no-untyped-def]
    size, total = 0, 0.0
    while size < len(cut) and cut[size] != 0:
        row = X[abs(cut[size]) - 1]
        for q in range(size):
            x = row[abs(cut[q]) - 1]
            total += x if (cut[size] > 0) == (cut[q] > 0) else -x
        size += 1
    return 1.0 - size - 2.0 * total


@njit(cache=True, nogil=True)
def _subtract(M, cut, w):  # type: ignore[no-untyped-def]
    """M − w b bᵀ, in place, without the diagonal."""
    for p in range(len(cut)):
        if cut[p] == 0:
            break
        i = abs(cut[p]) - 1
        for q in range(p):
            j = abs(cut[q]) - 1
            change = -w if (cut[p] > 0) == (cut[q] > 0) else w
            M[i, j] += change
            M[j, i] += change
