"""1-flip descent of many sign vectors at once over NumPy rows: first improvement, in order.

All columns share each pass over P, panels of rows times T by BLAS, and only rows where some sign flips cost more:
O(n · rank · columns) a pass, at the speed of a matrix product once flips have become rare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from hashlearn.core.arrays import FloatArray

FLIP_ROWS = 64
ROWS_PER_PIECE = 1 << 16  # so that time limits and Ctrl-C are heard in between


def flip_descent(
    P: FloatArray, weights: FloatArray, X: FloatArray, between: Callable[[], Any], passes: int
) -> FloatArray:
    """`Rows.flip_descent`; X is overwritten if it is C-contiguous."""
    X = np.ascontiguousarray(X)
    T = np.ascontiguousarray(P.T @ X)
    diagonal = np.einsum("ij,ij,j->i", P, P, weights)
    for _ in range(passes):
        flips = 0
        for first in range(0, len(P), ROWS_PER_PIECE):
            piece = slice(first, first + ROWS_PER_PIECE)
            flips += _flip_pass(P[piece], weights, diagonal[piece], X[piece], T)
            between()
        if flips == 0:
            break
    return X


@njit(cache=True, nogil=True)
def _flip_pass(P, weights, diagonal, X, T):  # type: ignore[no-untyped-def]
    """One pass in place; T = PᵀX (of all rows) follows. A flip must gain more than rounding."""
    n, rank = P.shape
    columns = X.shape[1]
    flips = 0
    pull = np.empty((FLIP_ROWS, columns))
    B = np.empty_like(T)
    for first in range(0, n, FLIP_ROWS):
        rows = min(FLIP_ROWS, n - first)
        panel = P[first : first + rows]
        for j in range(rank):
            for c in range(columns):
                B[j, c] = weights[j] * T[j, c]
        np.dot(panel, B, pull[:rows])
        for i in range(rows):
            for c in range(columns):
                x = X[first + i, c]
                field = pull[i, c]
                gain = x * field - diagonal[first + i]
                if gain <= 1e-12 * (abs(field) + abs(diagonal[first + i])):
                    continue
                flips += 1
                X[first + i, c] = -x
                for j in range(rank):
                    T[j, c] -= 2.0 * x * panel[i, j]
                for later in range(i + 1, rows):
                    among = 0.0
                    for j in range(rank):
                        among += panel[later, j] * weights[j] * panel[i, j]
                    pull[later, c] -= 2.0 * x * among
    return flips
