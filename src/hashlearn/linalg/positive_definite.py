"""Solves with a large positive definite matrix on all cores, with the same bits for any number of threads.

The lower half is held in tiles of a fixed size. Each tile's arithmetic is a fixed series of BLAS calls on one thread,
and threads share the tiles. The factorization (Cholesky, n³/3 operations) is done in float32, which takes half of the
time and memory. Refinement with float64 residuals brings the solution to the accuracy of float64 (Higham 2002, section
12.1). Where it does not get there, the matrix is ill-conditioned and is factored in float64.

Memory: 4 n² bytes for the tiles and 2 n² for their factor, where a full matrix in float64 takes 8 n².
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.threads import map_threads, one_blas_thread

TILE = 512
MOST_ROUNDS = 10  # of refinement; 3 are usual

Tiles: TypeAlias = dict[tuple[int, int], NDArray[Any]]


class PositiveDefinite:
    """A symmetric matrix, given as a function of two slices: the block of these rows and columns, in float64.

    >>> A = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> PositiveDefinite(2, lambda rows, columns: A[rows, columns]).solve(np.array([[3.0], [0.0]]))
    array([[ 2.],
           [-1.]])
    """

    def __init__(self, n: int, block: Callable[[slice, slice], FloatArray]) -> None:
        self.parts = [slice(first, min(first + TILE, n)) for first in range(0, n, TILE)]
        places = [(i, j) for i in range(len(self.parts)) for j in range(i + 1)]

        def tile(place: tuple[int, int]) -> FloatArray:
            return np.array(block(*(self.parts[k] for k in place)), np.float64, order="C")

        with one_blas_thread():
            self.tiles: Tiles = dict(zip(places, map_threads(tile, places), strict=True))

    def solve(self, Y: NDArray[Any]) -> FloatArray:
        """A⁻¹ Y for Y of shape (n, m). A is used up.

        Raises `scipy.linalg.LinAlgError` if A is not positive definite.
        """
        Y = np.asarray(Y, np.float64)
        with one_blas_thread():
            solution = self._refined(Y)
            if solution is None:
                self._factorize(self.tiles)
                solution = self._substitute(self.tiles, Y)
            self.tiles = {}
        return solution

    def _refined(self, Y: FloatArray) -> FloatArray | None:
        """The solution by a float32 factor and refinement; None if its residual stays above that of float64."""
        narrow = map_threads(lambda tile: tile.astype(np.float32), self.tiles.values())
        factor: Tiles = dict(zip(self.tiles, narrow, strict=True))
        try:
            self._factorize(factor)
        except LinAlgError:
            return None
        squares = map_threads(
            lambda place: (1 + (place[0] != place[1])) * np.square(self.tiles[place]).sum(), self.tiles
        )
        size_of_A = float(sum(squares)) ** 0.5
        sizes: FloatArray = np.abs(Y).max(axis=0, initial=0.0)
        sizes[sizes == 0.0] = 1.0
        Y = Y / sizes  # nothing may be too small or too large for float32
        solution, residual, before = np.zeros_like(Y), Y, np.inf
        for _ in range(MOST_ROUNDS):
            solution += self._substitute(factor, residual)
            residual = Y - self._product(solution)
            level = EPS * size_of_A * np.linalg.norm(solution, axis=0)  # what rounding in float64 leaves
            error = np.linalg.norm(residual, axis=0)
            if (error <= level).all():
                return solution * sizes
            if not error.max() < 0.5 * before:
                break
            before = error.max()
        return None

    def _product(self, X: FloatArray) -> FloatArray:
        """A X."""
        result = np.empty_like(X)

        def rows(i: int) -> None:
            total = np.zeros((len(X[self.parts[i]]), X.shape[1]))
            for j, part in enumerate(self.parts):
                total += (self.tiles[i, j] if j <= i else self.tiles[j, i].T) @ X[part]
            result[self.parts[i]] = total

        list(map_threads(rows, range(len(self.parts))))
        return result

    def _factorize(self, tiles: Tiles) -> None:
        """Replace the tiles of A by those of L, with A = L Lᵀ, from left to right."""
        count = len(self.parts)
        for k in range(count):
            corner = tiles[k, k] = cholesky(tiles[k, k], lower=True, overwrite_a=True, check_finite=False)

            def below(i: int, k: int = k, corner: NDArray[Any] = corner) -> None:
                tiles[i, k] = solve_triangular(corner, tiles[i, k].T, lower=True, check_finite=False).T

            def update(place: tuple[int, int], k: int = k) -> None:
                i, j = place
                tiles[i, j] -= tiles[i, k] @ tiles[j, k].T

            list(map_threads(below, range(k + 1, count)))
            list(map_threads(update, [(i, j) for i in range(k + 1, count) for j in range(k + 1, i + 1)]))

    def _substitute(self, factor: Tiles, Y: FloatArray) -> FloatArray:
        """(L Lᵀ)⁻¹ Y, in the factor's precision."""
        parts = self.parts
        X = Y.astype(factor[0, 0].dtype) if parts else Y
        for transposed in (False, True):
            order = range(len(parts))[:: -1 if transposed else 1]
            for place, k in enumerate(order):
                corner = factor[k, k]
                solved = X[parts[k]] = solve_triangular(
                    corner, X[parts[k]], lower=True, trans=int(transposed), check_finite=False
                )

                def update(i: int, k: int = k, solved: NDArray[Any] = solved) -> None:
                    X[parts[i]] -= (factor[k, i].T if i < k else factor[i, k]) @ solved

                list(map_threads(update, order[place + 1 :]))
        return X.astype(np.float64)
