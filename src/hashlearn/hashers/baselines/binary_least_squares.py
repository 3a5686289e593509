"""min zᵀGz − 2bᵀz over z ∈ {0, 1}^L for many b and one positive definite G of few rows: codes for a linear decoder.

`exact_codes` searches depth first in the triangle of Cholesky's factor, with bounds, so that few of the 2^L codes are
looked at; `flipped_codes` changes single bits until none helps. Neither ends above its start. Linear in the number
of b; rows are independent of each other, so threads change nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks

ByteArray = NDArray[np.uint8]


def exact_codes(G: FloatArray, B: FloatArray, start: ByteArray) -> ByteArray:
    """The minimizer for every row b of B; the row of ``start`` if that is as good.

    >>> exact_codes(np.eye(2), np.array([[0.9, 0.2]]), np.zeros((1, 2), np.uint8))
    array([[1, 0]], dtype=uint8)
    """
    lower = np.linalg.cholesky(G)
    targets = np.ascontiguousarray(np.linalg.solve(lower, B.T).T)  # ‖lowerᵀz − target‖² = zᵀGz − 2bᵀz + constant
    upper, codes = np.ascontiguousarray(lower.T), start.copy()
    map_row_blocks(lambda a, b: _search(upper, targets[a:b], codes[a:b]), len(B), 2 ** G.shape[0])
    return codes


def flipped_codes(G: FloatArray, B: FloatArray, start: ByteArray) -> ByteArray:
    """The better of two descents for every row: one from ``start``, one from the unconstrained minimizer, rounded."""
    rounded = (np.linalg.solve(G, B.T).T >= 0.5).astype(np.uint8)
    codes = start.copy()
    map_row_blocks(lambda a, b: _descend(G, B[a:b], codes[a:b]), len(B), G.shape[0])
    map_row_blocks(lambda a, b: _descend(G, B[a:b], rounded[a:b]), len(B), G.shape[0])
    better = code_values(G, B, rounded) < code_values(G, B, codes)
    codes[better] = rounded[better]
    return codes


def code_values(G: FloatArray, B: FloatArray, codes: ByteArray) -> FloatArray:
    """zᵀGz − 2bᵀz for every row."""
    Z = codes.astype(np.float64)
    return ((Z @ G - 2.0 * B) * Z).sum(axis=1)


@njit(cache=True, nogil=True)
def _search(upper, targets, codes):  # type: ignore[no-untyped-def]
    """Bits are set from the last to the first; cost[i] is what bits i, i + 1, … add to the squared distance."""
    n, length = codes.shape
    z = np.empty(length, np.uint8)
    cost = np.zeros(length + 1)
    center, nearer = np.empty(length), np.empty(length, np.uint8)
    tried = np.empty(length, np.uint8)
    for row in range(n):
        best = 0.0
        for i in range(length):
            residual = -targets[row, i]
            for j in range(i, length):
                residual += upper[i, j] * codes[row, j]
            best += residual * residual
        i = length - 1
        center[i], tried[i] = targets[row, i], 0
        nearer[i] = center[i] > 0.5 * upper[i, i]
        while i < length:
            if tried[i] == 2:
                i += 1
                continue
            value = nearer[i] if tried[i] == 0 else 1 - nearer[i]
            tried[i] += 1
            residual = upper[i, i] * value - center[i]
            total = cost[i + 1] + residual * residual
            if total >= best:
                tried[i] = 2  # the other value, if still untried, is even farther
                continue
            z[i], cost[i] = value, total
            if i == 0:
                best = total
                codes[row] = z
                continue
            i -= 1
            center[i] = targets[row, i]
            for j in range(i + 1, length):
                center[i] -= upper[i, j] * z[j]
            nearer[i] = center[i] > 0.5 * upper[i, i]
            tried[i] = 0


@njit(cache=True, nogil=True)
def _descend(G, B, codes):  # type: ignore[no-untyped-def]
    n, length = codes.shape
    slope = np.empty(length)
    for row in range(n):
        for i in range(length):
            slope[i] = -B[row, i]
            for j in range(length):
                slope[i] += G[i, j] * codes[row, j]
        improved = True
        while improved:
            improved = False
            for i in range(length):
                step = 1.0 - 2.0 * codes[row, i]
                if 2.0 * step * slope[i] + G[i, i] < -1e-12 * G[i, i]:  # ignore rounding, or the loop might not end
                    codes[row, i] = 1 - codes[row, i]
                    improved = True
                    for j in range(length):
                        slope[j] += step * G[j, i]
