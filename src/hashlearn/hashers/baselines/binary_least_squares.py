"""min zᵀGz − 2bᵀz over z ∈ {0, 1}^L for many b and one positive definite G of few rows: codes for a linear decoder.

Single bits are changed until none helps, so no code ends above its start. Linear in the number of b; rows are
independent of each other, so threads change nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks

ByteArray = NDArray[np.uint8]


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
