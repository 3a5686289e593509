"""The compiled passes over rows of P in the low-rank relaxation, about 4 · n · rank · k operations each.

With B = W T (rank × k) every row p of P has the gradient g = pᵀB and, at a fixed point, the unit vector v = −g/‖g‖.
A row with g = 0 gets v = 0. A pass works on panels of rows that stay in the second-level cache, so that P is read from
memory once for both of its products. BLAS computes the products.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hashlearn.bqp.rows.interface import TINY
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import sum_row_blocks

# Numbers in a panel of P: 640 kB, under the 1 MB second-level cache of common machines.
PANEL_SIZE = 80_000
# Rows that one coordinate step takes together. The step is exact: it uses the 16 × 16 block of A between them.
STEP_ROWS = 16


def unit_rows(P: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``(T, V, norms)``: rows v_i = −g_i/‖g_i‖ for g_i = p_iᵀB, their T = PᵀV, and ‖g_i‖."""
    n = len(P)
    V, norms, panel = np.empty((n, B.shape[1])), np.empty(n), _panel_rows(P)
    T = sum_row_blocks(lambda a, b: _unit_rows(P[a:b], B, V[a:b], norms[a:b], panel), n, P.shape[1])
    return T, V, norms


def image(P: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``(T, norms)`` of `unit_rows`, without storing the n × k rows."""
    n, k, panel = len(P), B.shape[1], _panel_rows(P)
    norms = np.empty(n)

    def block(a: int, b: int) -> FloatArray:
        return _unit_rows(P[a:b], B, np.empty((b - a, k)), norms[a:b], panel)

    return sum_row_blocks(block, n, P.shape[1]), norms


def derivative(P: FloatArray, V: FloatArray, norms: FloatArray, dB: FloatArray) -> FloatArray:
    """Derivative of B ↦ PᵀV(B) in direction dB, at the point that V and norms belong to."""
    panel = _panel_rows(P)
    return sum_row_blocks(lambda a, b: _derivative(P[a:b], V[a:b], norms[a:b], dB, panel), len(P), P.shape[1])


def _panel_rows(P: FloatArray) -> int:
    return max(64, min(1024, PANEL_SIZE // max(P.shape[1], 1) // 64 * 64))


@njit(cache=True, nogil=True)
def mixing_sweep(P, weights, V, T):  # type: ignore[no-untyped-def]
    """One pass of exact coordinate steps v_i ← −g_i/‖g_i‖ where g_i leaves out row i itself; updates T = PᵀV.

    Returns the mean squared movement of a row, weighted by ‖g_i‖. The value of the relaxation never rises.
    """
    n, k = V.shape
    moved = 0.0
    total = 0.0
    rank = P.shape[1]
    weighted = np.empty((STEP_ROWS, rank))
    gradient = np.empty((STEP_ROWS, k))
    among = np.empty((STEP_ROWS, STEP_ROWS))
    step = np.empty((STEP_ROWS, k))
    change = np.empty_like(T)
    for first in range(0, n, STEP_ROWS):
        rows = min(STEP_ROWS, n - first)
        panel = P[first : first + rows]
        for i in range(rows):
            for j in range(rank):
                weighted[i, j] = panel[i, j] * weights[j]
        np.dot(weighted[:rows], T, gradient[:rows])
        if rows == STEP_ROWS:
            np.dot(weighted, panel.T, among)
        else:
            among[:rows, :rows] = np.dot(weighted[:rows], panel.T)
        for i in range(rows):
            row = V[first + i]
            own = among[i, i]
            for c in range(k):
                gradient[i, c] -= own * row[c]
            for j in range(i):
                a = among[i, j]
                for c in range(k):
                    gradient[i, c] += a * step[j, c]
            square = 0.0
            for c in range(k):
                square += gradient[i, c] * gradient[i, c]
            norm = np.sqrt(square)
            distance = 0.0
            for c in range(k):
                new = -gradient[i, c] / norm if norm > TINY else row[c]
                step[i, c] = new - row[c]
                row[c] = new
                distance += step[i, c] * step[i, c]
            moved += distance * norm
            total += norm
        np.dot(panel.T, step[:rows], change)
        T += change
    return moved / max(total, TINY)


@njit(cache=True, nogil=True)
def _unit_rows(P, B, V, norms, panel_rows):  # type: ignore[no-untyped-def]
    n, rank = P.shape
    k = B.shape[1]
    T = np.zeros((rank, k))
    part = np.empty((rank, k))
    for first in range(0, n, panel_rows):
        last = min(first + panel_rows, n)
        panel = P[first:last]
        rows = V[first:last]
        np.dot(panel, B, rows)
        for i in range(last - first):
            square = 0.0
            for c in range(k):
                square += rows[i, c] * rows[i, c]
            norm = np.sqrt(square)
            norms[first + i] = norm
            factor = -1.0 / max(norm, TINY)
            for c in range(k):
                rows[i, c] *= factor
        np.dot(panel.T, rows, part)
        T += part
    return T


@njit(cache=True, nogil=True)
def _derivative(P, V, norms, dB, panel_rows):  # type: ignore[no-untyped-def]
    """Σ_i p_i dv_iᵀ with dv_i = −(I − v_i v_iᵀ)(p_iᵀ dB)/‖g_i‖."""
    n, rank = P.shape
    k = dB.shape[1]
    T = np.zeros((rank, k))
    part = np.empty((rank, k))
    for first in range(0, n, panel_rows):
        last = min(first + panel_rows, n)
        panel = P[first:last]
        change = np.dot(panel, dB)
        for i in range(last - first):
            along = 0.0
            for c in range(k):
                along += change[i, c] * V[first + i, c]
            factor = -1.0 / max(norms[first + i], TINY)
            for c in range(k):
                change[i, c] = factor * (change[i, c] - along * V[first + i, c])
        np.dot(panel.T, change, part)
        T += part
    return T
