"""The augmented Lagrangian of the relaxation with cuts, in factored form, and its minimization by L-BFGS.

With X = VVᵀ and unit rows in V, a cut b is bᵀXb ≥ 1 (see `cuts`). The function is

    <C, X> + Σ_t (w_t² − γ_t²) / 2σ  with  w_t = max(0, γ_t + σ (1 − b_tᵀXb_t)),

and its gradient is 2 M V, projected to the spheres of the rows, with M = C − Σ w_t b_t b_tᵀ. Diagonals are left out of
C and of b bᵀ, since diag X = 1. At a minimum, w are the new multipliers and M − Diag(y) ⪰ 0 for y_i = v_iᵀ(MV)_i.

An evaluation costs two products of m × m and m × rank and a pass over the cuts: 0.2 ms at m = 100, rank 40 and 2,000
cuts. An eigendecomposition of that size, which dual methods need for each step, takes 1.4 ms. So the factored form is
used, and only the dual point at the end of a round needs an eigendecomposition. At these sizes a step in Python would
take as long as its evaluation, so the whole minimization is compiled (SciPy's L-BFGS-B takes twice as long).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hashlearn.bqp.flips import dot

PAIRS = 8  # of steps and gradient changes that L-BFGS keeps
TRIALS = 25  # step lengths that a line search tries


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
