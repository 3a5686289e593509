"""Principal axes of X, as a linear map that can be stored and applied to new samples.

Up to `MAX_COVARIANCE` features the covariance is formed and decomposed, O(n · n_features²). Beyond, a randomized SVD is
used. A sparse X is made dense in blocks of rows. The blocks depend on n alone, so the number of threads has no effect.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.extmath import randomized_svd

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import MAX_COVARIANCE


class PrincipalAxes(NamedTuple):
    """Scores of x are (x / scale − centre) @ directions; scale is X's largest entry, so that no square overflows."""

    scale: float
    centre: FloatArray  # (n_features,), the mean of X / scale
    directions: FloatArray  # (n_features, n_components), orthonormal columns, most variance first
    variances: FloatArray  # (n_components,), of the scores

    def scores(self, X: Any) -> FloatArray:
        """Centred scores, (n, n_components)."""
        scores = np.empty((X.shape[0], self.directions.shape[1]))

        def block(a: int, b: int) -> None:
            scores[a:b] = self._rows(X[a:b]) @ self.directions

        with one_blas_thread():
            map_row_blocks(block, X.shape[0])
        return scores

    def _rows(self, block: Any) -> FloatArray:
        dense = block.toarray() if hasattr(block, "toarray") else block
        return np.asarray(dense, dtype=np.float64) / self.scale - self.centre


def principal_axes(X: Any, n_components: int, rng: np.random.Generator) -> PrincipalAxes:
    """The first n_components axes, or as many as n and n_features allow.

    >>> X = np.array([[0.0, 0.0], [0.0, 4.0], [1.0, 2.0], [-1.0, 2.0]])
    >>> principal_axes(X, 1, np.random.default_rng(0)).directions.ravel()
    array([0., 1.])
    """
    n, n_features = X.shape
    scale = float(max(X.max(), -X.min())) or 1.0
    centre = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel() / scale
    whole = PrincipalAxes(scale, centre, np.empty((n_features, 0)), np.empty(0))
    count = min(n_components, n_features, n)

    def scatter(a: int, b: int) -> FloatArray:
        rows = whole._rows(X[a:b])
        return rows.T @ rows

    with one_blas_thread():
        if n_features <= MAX_COVARIANCE:
            squares, vectors = np.linalg.eigh(sum_row_blocks(scatter, n))
            squares, directions = squares[::-1][:count], vectors[:, ::-1][:, :count]
        else:
            seed = int(rng.integers(2**31))
            _, singular, Vt = randomized_svd(whole._rows(X), count, random_state=seed, n_iter=4)
            squares, directions = singular**2, Vt.T
    return whole._replace(directions=with_fixed_signs(directions), variances=np.maximum(squares, 0.0) / n)


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
    n_features, found = directions.shape
    if found >= count:
        return directions
    return np.hstack([directions, rng.standard_normal((n_features, count - found))])
