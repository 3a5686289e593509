"""The augmented Lagrangian of the relaxation with cuts, in factored form, and its minimization by L-BFGS.

With X = VVᵀ and unit rows in V, a cut b is bᵀXb ≥ 1 (see `cuts`). The function is

    <C, X> + Σ_t (w_t² − γ_t²) / 2σ  with  w_t = max(0, γ_t + σ (1 − b_tᵀXb_t)),

and its gradient is 2 M V, projected to the spheres of the rows, with M = C − Σ w_t b_t b_tᵀ. Diagonals are left out of
C and of b bᵀ, since diag X = 1. At a minimum, w are the new multipliers and M − Diag(y) ⪰ 0 for y_i = v_iᵀ(MV)_i.

An evaluation costs two products of m × m and m × rank and a pass over the cuts: 0.2 ms at m = 100, rank 40 and 2,000
cuts. An eigendecomposition of that size, which dual methods need for each step, takes 1.4 ms. So the factored form is
used, and only the dual point at the end of a round needs an eigendecomposition.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MEMORY = 8  # pairs of steps and gradient changes that L-BFGS keeps
TRIALS = 25  # step lengths that a line search tries


@njit(cache=True, nogil=True)
def minimize(C, V, cuts, sizes, gamma, sigma, tolerance, max_iter, X, M):  # type: ignore[no-untyped-def]
    """Change V until the gradient's norm is at most ``tolerance``. Returns the value.

    On return X = VVᵀ, and M belongs to the multipliers w of that X.
    """
    m, rank = V.shape
    size = m * rank
    G, V_new, G_new = np.empty_like(V), np.empty_like(V), np.empty_like(V)
    steps, changes = np.empty((MEMORY, size)), np.empty((MEMORY, size))
    inverse, weights = np.zeros(MEMORY), np.zeros(MEMORY)
    direction = np.empty(size)
    stored = 0
    value = _evaluate(C, V, cuts, sizes, gamma, sigma, X, M, G)
    for _ in range(max_iter):
        g = G.reshape(size)
        norm = np.sqrt(_dot(g, g))
        if norm <= tolerance:
            break
        slope = _quasi_newton(g, steps, changes, inverse, weights, stored, direction)
        if not slope < 0.0:
            stored = 0
            for u in range(size):
                direction[u] = -g[u]
            slope = -norm * norm
        length = 1.0 if stored else min(1.0, 0.3 * np.sqrt(m) / norm)
        found = False
        for _ in range(TRIALS):
            _retract(V, direction, length, V_new)
            value_new = _evaluate(C, V_new, cuts, sizes, gamma, sigma, X, M, G_new)
            if value_new <= value + 1e-4 * length * slope:
                found = True
                break
            wanted = -0.5 * slope * length * length / (value_new - value - slope * length)
            length = min(max(wanted, 0.1 * length), 0.5 * length)
        if not found:
            break
        k = stored % MEMORY
        v, v_new, g_new = V.reshape(size), V_new.reshape(size), G_new.reshape(size)
        for u in range(size):
            steps[k, u], changes[k, u] = v_new[u] - v[u], g_new[u] - g[u]
            v[u], g[u] = v_new[u], g_new[u]
        curvature = _dot(steps[k], changes[k])
        if curvature > 1e-12 * np.sqrt(_dot(steps[k], steps[k]) * _dot(changes[k], changes[k])):
            inverse[k] = 1.0 / curvature
            stored += 1
        value = value_new
    return _evaluate(C, V, cuts, sizes, gamma, sigma, X, M, G)


@njit(cache=True, nogil=True)
def multipliers(X, cuts, sizes, gamma, sigma):  # type: ignore[no-untyped-def]
    """w of the module's equation."""
    w = np.empty(len(sizes))
    for t in range(len(sizes)):
        w[t] = max(0.0, gamma[t] + sigma * violation(X, cuts[t], sizes[t]))
    return w


@njit(cache=True, nogil=True)
def weighted(C, cuts, sizes, w):  # type: ignore[no-untyped-def]
    """M = C − Σ w_t b_t b_tᵀ without the diagonals of the cuts."""
    M = C.copy()
    for t in range(len(sizes)):
        if w[t] != 0.0:
            _subtract(M, cuts[t], sizes[t], w[t])
    return M


@njit(cache=True, nogil=True)
def violation(X, cut, size):  # type: ignore[no-untyped-def]
    """1 − bᵀXb, positive if the cut is violated."""
    total = 0.0
    for p in range(size):
        row = X[abs(cut[p]) - 1]
        for q in range(p):
            x = row[abs(cut[q]) - 1]
            total += x if (cut[p] > 0) == (cut[q] > 0) else -x
    return 1.0 - size - 2.0 * total


@njit(cache=True, nogil=True)
def _evaluate(C, V, cuts, sizes, gamma, sigma, X, M, G):  # type: ignore[no-untyped-def]
    """The value; X, M and the projected gradient G are written."""
    m, rank = V.shape
    np.dot(V, V.T, X)
    value = 0.0
    for i in range(m):
        for j in range(m):
            value += C[i, j] * X[i, j]
            M[i, j] = C[i, j]
    for t in range(len(sizes)):
        w = gamma[t] + sigma * violation(X, cuts[t], sizes[t])
        value -= gamma[t] * gamma[t] / (2.0 * sigma)
        if w > 0.0:
            value += w * w / (2.0 * sigma)
            _subtract(M, cuts[t], sizes[t], w)
    np.dot(M, V, G)
    for i in range(m):
        along = 0.0
        for c in range(rank):
            along += G[i, c] * V[i, c]
        for c in range(rank):
            G[i, c] = 2.0 * (G[i, c] - along * V[i, c])
    return value


@njit(cache=True, nogil=True)
def _subtract(M, cut, size, w):  # type: ignore[no-untyped-def]
    """M − w b bᵀ, in place, without the diagonal."""
    for p in range(size):
        i = abs(cut[p]) - 1
        for q in range(p):
            j = abs(cut[q]) - 1
            change = -w if (cut[p] > 0) == (cut[q] > 0) else w
            M[i, j] += change
            M[j, i] += change


@njit(cache=True, nogil=True)
def _retract(V, direction, length, V_new):  # type: ignore[no-untyped-def]
    """Rows of V + length · direction, scaled to norm 1."""
    m, rank = V.shape
    for i in range(m):
        square = 0.0
        for c in range(rank):
            moved = V[i, c] + length * direction[i * rank + c]
            V_new[i, c] = moved
            square += moved * moved
        scale = 1.0 / np.sqrt(square)
        for c in range(rank):
            V_new[i, c] *= scale


@njit(cache=True, nogil=True)
def _quasi_newton(g, steps, changes, inverse, weights, stored, direction):  # type: ignore[no-untyped-def]
    """The two-loop recursion of L-BFGS. Writes the direction and returns its slope."""
    for u in range(len(g)):
        direction[u] = -g[u]
    held = min(stored, MEMORY)
    for back in range(held):
        k = (stored - 1 - back) % MEMORY
        weights[k] = inverse[k] * _dot(steps[k], direction)
        for u in range(len(g)):
            direction[u] -= weights[k] * changes[k, u]
    if held > 0:
        k = (stored - 1) % MEMORY
        scale = 1.0 / (inverse[k] * _dot(changes[k], changes[k]))
        for u in range(len(g)):
            direction[u] *= scale
    for back in range(held - 1, -1, -1):
        k = (stored - 1 - back) % MEMORY
        rest = weights[k] - inverse[k] * _dot(changes[k], direction)
        for u in range(len(g)):
            direction[u] += rest * steps[k, u]
    return _dot(g, direction)


@njit(cache=True, nogil=True)
def _dot(a, b):  # type: ignore[no-untyped-def]
    """aᵀb in four sums. `np.dot` on vectors takes a second to compile, in each place."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    last = len(a) // 4 * 4
    for u in range(0, last, 4):
        s0 += a[u] * b[u]
        s1 += a[u + 1] * b[u + 1]
        s2 += a[u + 2] * b[u + 2]
        s3 += a[u + 3] * b[u + 3]
    for u in range(last, len(a)):
        s0 += a[u] * b[u]
    return (s0 + s1) + (s2 + s3)
