"""Principal axes of X, as a linear map that can be stored and applied to new samples.

Up to `MAX_COVARIANCE` features the covariance is formed and decomposed, O(n · n_features²); a sparse X is made dense in
blocks of rows. Beyond, a randomized SVD is used, and a sparse X stays sparse: products subtract the mean afterwards,
O(nnz · n_components). The blocks depend on n alone, so the number of threads has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import MAX_COVARIANCE

Product: TypeAlias = Callable[[FloatArray], FloatArray]
OVERSAMPLED, POWER_ITERATIONS = 10, 4  # of the randomized SVD


class PrincipalAxes(NamedTuple):
    """Scores of x are (x / scale − center) @ directions; scale is X's largest entry, so that no square overflows."""

    scale: float
    center: FloatArray  # (n_features,), the mean of X / scale
    directions: FloatArray  # (n_features, n_components), orthonormal columns, most variance first
    variances: FloatArray  # (n_components,), of the scores

    def scores(self, X: Any) -> FloatArray:
        """Centered scores, (n, n_components)."""
        scores = np.empty((X.shape[0], self.directions.shape[1]))
        offset = self.center @ self.directions

        def block(a: int, b: int) -> None:
            if issparse(X):
                scores[a:b] = X[a:b].astype(np.float64) @ self.directions / self.scale - offset
            else:
                scores[a:b] = self._rows(X[a:b]) @ self.directions

        with one_blas_thread():
            map_row_blocks(block, X.shape[0])
        return scores

    def _rows(self, block: Any) -> FloatArray:
        dense = block.toarray() if issparse(block) else block
        return np.asarray(dense, dtype=np.float64) / self.scale - self.center

    def _products(self, X: Any) -> tuple[Product, Product]:
        """Products with `_rows` of all of X and with its transpose; of sparse rows nothing dense is formed."""
        if not issparse(X):
            dense = self._rows(X)
            return lambda V: dense @ V, lambda U: dense.T @ U
        rows = X.astype(np.float64) / self.scale
        columns, center = rows.T, self.center
        return lambda V: rows @ V - center @ V, lambda U: columns @ U - np.multiply.outer(center, U.sum(axis=0))


def principal_axes(X: Any, n_components: int, rng: np.random.Generator) -> PrincipalAxes:
    """The first n_components axes, or as many as n and n_features allow.

    >>> X = np.array([[0.0, 0.0], [0.0, 4.0], [1.0, 2.0], [-1.0, 2.0]])
    >>> principal_axes(X, 1, np.random.default_rng(0)).directions.ravel()
    array([0., 1.])
    """
    n, n_features = X.shape
    scale = float(max(X.max(), -X.min())) or 1.0
    center = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel() / scale
    whole = PrincipalAxes(scale, center, np.empty((n_features, 0)), np.empty(0))
    count = min(n_components, n_features, n)

    def scatter(a: int, b: int) -> FloatArray:
        rows = whole._rows(X[a:b])
        return rows.T @ rows

    with one_blas_thread():
        if n_features <= MAX_COVARIANCE:
            squares, vectors = np.linalg.eigh(sum_row_blocks(scatter, n))
            squares, directions = squares[::-1][:count], vectors[:, ::-1][:, :count]
        else:
            singular, directions = _leading_singular_vectors(*whole._products(X), X.shape, count, rng)
            squares = singular**2
    return whole._replace(directions=with_fixed_signs(directions), variances=np.maximum(squares, 0.0) / n)


def _leading_singular_vectors(
    product: Product, transposed: Product, shape: tuple[int, int], count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Singular values, largest first, and right vectors as columns, by a randomized SVD (Halko et al. 2011)."""
    wide = shape[0] < shape[1]  # iterate on the shorter side
    forth, back = (transposed, product) if wide else (product, transposed)
    draws = np.random.RandomState(int(rng.integers(2**31)))
    V = draws.normal(size=(min(shape), count + OVERSAMPLED))
    for _ in range(POWER_ITERATIONS):
        V = np.linalg.qr(back(np.linalg.qr(forth(V))[0]))[0]
    Q = np.linalg.qr(forth(V))[0]
    U, singular, Wt = np.linalg.svd(back(Q), full_matrices=False)
    return singular[:count], Q @ Wt[:count].T if wide else U[:, :count]


def with_fixed_signs(directions: FloatArray) -> FloatArray:
    """Columns whose entry of largest magnitude is positive."""
    signs: FloatArray = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    return directions * signs


def top_directions(scatter: FloatArray, count: int, fixed_signs: bool = True) -> FloatArray:
    """The eigenvectors of the ``count`` largest eigenvalues, largest first."""
    directions = np.linalg.eigh(scatter)[1][:, ::-1][:, :count]
    return with_fixed_signs(directions) if fixed_signs else directions


def filled_up(directions: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """At least ``count`` columns: random directions follow if there are fewer."""
    n_features, n_columns = directions.shape
    if n_columns >= count:
        return directions
    return np.hstack([directions, rng.standard_normal((n_features, count - n_columns))])
