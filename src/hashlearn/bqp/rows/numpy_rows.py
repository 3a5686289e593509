"""Rows of a C-contiguous float64 NumPy array: BLAS on blocks of rows in several threads, and one compiled pass.

Methods without a docstring have that of `Rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit

from hashlearn.bqp.rows import TINY, Mixing, Rows
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.threads import block_rows, iter_row_blocks
from hashlearn.core.thresholds import THREADED_PRODUCT
from hashlearn.linalg.gram import gram

# Rows that one coordinate step takes together. The step is exact: it uses the 16 × 16 block of A between them.
STEP_ROWS = 16


class NumpyRows(Rows):
    """The passes over an array, which is not copied."""

    xp, on_host = np, True

    def __init__(self, P: FloatArray) -> None:
        super().__init__(P)
        rows = block_rows(self.rank)
        self.sum_rounding = self.n * EPS
        # Each entry is a sum of n products, added within blocks and then over blocks.
        self.gram_rounding = (rows + self.n / rows + 16) * EPS

    def blocks(self, function: Callable[[slice, Any], Any]) -> Iterator[Any]:
        return iter_row_blocks(lambda a, b: function(slice(a, b), self.P[a:b]), self.n, self.rank)

    def thin_product(self, P: FloatArray, B: FloatArray) -> FloatArray:
        return P @ B

    def transposed_product(self, P: FloatArray, V: FloatArray) -> FloatArray:
        return P.T @ V

    def dots(self, U: FloatArray, V: FloatArray) -> FloatArray:
        return np.einsum("ij,ij->i", U, V)

    def norms(self, V: FloatArray) -> FloatArray:
        return np.sqrt(self.dots(V, V))

    def divided_gram(self, divisor: FloatArray | None) -> FloatArray:
        return gram(self.P, divisor, width=self.rank)

    def transposed(self, X: FloatArray) -> FloatArray:
        if is_small(self.P.size, X):
            return self.P.T @ X
        return self.total(lambda rows, P: P.T @ X[rows])

    def product(self, B: FloatArray) -> FloatArray:
        if is_small(self.P.size, B):
            return self.P @ B
        return np.concatenate(list(self.blocks(lambda _, P: P @ B)))

    def mixing(self, weights: FloatArray, V: FloatArray) -> Mixing:
        return NumpyMixing(self.P, weights, V)

    def sample(self, count: int, rng: np.random.Generator) -> NumpyRows:
        """Without replacement."""
        if 2 * count >= self.n:
            return self
        return NumpyRows(self.P[np.sort(rng.choice(self.n, count, replace=False))])


class NumpyMixing:
    """`Mixing` of one row after the other."""

    def __init__(self, P: FloatArray, weights: FloatArray, V: FloatArray) -> None:
        self._P, self._weights, self._V = P, weights, V
        self._T = P.T @ V

    def sweep(self) -> float:
        return mixing_sweep(self._P, self._weights, self._V, self._T)

    def image(self) -> FloatArray:
        return self._P.T @ self._V


def is_small(size: int, V: FloatArray) -> bool:
    """Whether threads do not pay: few multiplications, or a product with a vector, which memory limits."""
    return V.ndim == 1 or size * V.shape[1] < THREADED_PRODUCT


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
