"""Rows of a C-contiguous float64 NumPy array: compiled passes, and BLAS on blocks of rows in several threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.rows import numpy_kernels
from hashlearn.bqp.rows.inertia import ProofGram
from hashlearn.bqp.rows.interface import Linearized, Mixing, Rows
from hashlearn.bqp.rows.merging import merge_rows
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.threads import block_rows, map_row_blocks, sum_row_blocks
from hashlearn.core.thresholds import THREADED_PRODUCT
from hashlearn.linalg.gram import gram


class NumpyRows(Rows):
    """The passes over an array, which is not copied."""

    def __init__(self, P: FloatArray) -> None:
        self.P = P
        self.n, self.rank = P.shape

    def image(self, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        return numpy_kernels.image(self.P, B)

    def linearized(self, B: FloatArray) -> Linearized:
        return _Linearized(self.P, B)

    def mixing(self, weights: FloatArray, B: FloatArray | None, V: FloatArray | None = None) -> Mixing:
        if V is None:
            assert B is not None
            V = numpy_kernels.unit_rows(self.P, B)[1]
        return _Mixing(self.P, weights, V)

    def proof_gram(self, d: FloatArray) -> ProofGram:
        # Each entry is a sum of n products, added within blocks and then over blocks.
        d = np.maximum(d, 1e-9 * d.mean()) if d.any() else np.ones(self.n)
        rows = block_rows(self.rank)
        total = float(d.sum()) * (1.0 + self.n * EPS)
        return ProofGram(gram(self.P, d, width=self.rank), total, (rows + self.n / rows + 16) * EPS)

    def unit_rows(self, B: FloatArray, first: int = 0, last: int | None = None) -> FloatArray:
        """Rows first…last of the unit rows of B."""
        G = self.P[first:last] @ B
        norms = np.linalg.norm(G, axis=1)
        free = norms == 0.0  # any unit vector is optimal for such a row
        G[free, 0], norms[free] = -1.0, 1.0
        return G / -norms[:, None]

    def draw_products(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        P = self.P
        return sum_row_blocks(lambda a, b: P[a:b].T @ self._signs(B, normals, a, b), self.n, self.rank)

    def draw(self, B: FloatArray, normals: FloatArray) -> FloatArray:
        return np.concatenate(map_row_blocks(lambda a, b: self._signs(B, normals, a, b), self.n, self.rank))

    def _signs(self, B: FloatArray, normals: FloatArray, first: int, last: int) -> FloatArray:
        return np.where(self.unit_rows(B, first, last) @ normals < 0.0, -1.0, 1.0)

    def transposed(self, X: FloatArray) -> FloatArray:
        P = self.P
        if is_small(P.size, X):
            return P.T @ X
        return sum_row_blocks(lambda a, b: P[a:b].T @ X[a:b], self.n, self.rank)

    def product(self, B: FloatArray) -> FloatArray:
        P = self.P
        if is_small(P.size, B):
            return P @ B
        return np.concatenate(map_row_blocks(lambda a, b: P[a:b] @ B, self.n, self.rank))

    def gram(self) -> FloatArray:
        return gram(self.P, width=self.rank)

    def with_scaled_columns(self, factors: FloatArray) -> NumpyRows:
        """A copy."""
        return NumpyRows(self.P * factors)

    def diagonal(self, weights: FloatArray) -> FloatArray:
        return np.einsum("ij,ij,j->i", self.P, self.P, weights)

    def sample(self, count: int, rng: np.random.Generator) -> NumpyRows:
        """Without replacement."""
        if 2 * count >= self.n:
            return self
        return NumpyRows(self.P[np.sort(rng.choice(self.n, count, replace=False))])

    def take(self, index: NDArray[np.intp]) -> FloatArray:
        return self.P[index]

    def absolute_sums(self) -> FloatArray:
        P = self.P
        return sum_row_blocks(lambda a, b: np.abs(P[a:b]).sum(axis=0), self.n, self.rank)

    def with_columns(self, kept: NDArray[np.bool_]) -> NumpyRows:
        return NumpyRows(np.ascontiguousarray(self.P[:, kept]))

    def merged(self, weights: FloatArray, worthwhile: float) -> tuple[Rows, NDArray[np.intp]] | None:
        found = merge_rows(self.P, weights, worthwhile)
        return None if found is None else (NumpyRows(found[0]), found[1])

    def to_host(self) -> FloatArray:
        return self.P


class _Linearized:
    def __init__(self, P: FloatArray, B: FloatArray) -> None:
        self._P = P
        _, self._V, self._norms = numpy_kernels.unit_rows(P, B)

    def change(self, dB: FloatArray) -> FloatArray:
        return numpy_kernels.derivative(self._P, self._V, self._norms, dB)

    def gram(self) -> FloatArray:
        return gram(self._P, np.maximum(self._norms, 1e-3 * self._norms.mean()), width=self._P.shape[1])


class _Mixing:
    def __init__(self, P: FloatArray, weights: FloatArray, V: FloatArray) -> None:
        self._P, self._weights, self._V = P, weights, V
        self._T = P.T @ V

    def sweep(self) -> float:
        return numpy_kernels.mixing_sweep(self._P, self._weights, self._V, self._T)

    def image(self) -> FloatArray:
        return self._P.T @ self._V


def is_small(size: int, V: FloatArray) -> bool:
    """Whether threads do not pay: few multiplications, or a product with a vector, which memory limits."""
    return V.ndim == 1 or size * V.shape[1] < THREADED_PRODUCT
