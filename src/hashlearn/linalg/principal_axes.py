"""Principal axes of X, as a linear map that can be stored and applied to new samples, and rotations of its scores.

Up to `MAX_COVARIANCE` features the covariance is formed and decomposed, O(n · n_features²); a sparse X is made dense in
blocks of rows. Beyond, a randomized SVD is used, and a sparse X stays sparse: products subtract the mean afterwards,
O(nnz · n_components). The blocks depend on n alone, so the number of threads has no effect.

The rotation is that of iterative quantization (Gong and Lazebnik, CVPR 2011), O(n · n_bits²) for each iteration. Rows
that are rotated may be PyTorch tensors; the rotation is a float64 NumPy array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse

from hashlearn.core.arrays import FloatArray, is_tensor, tensor_like, to_float64
from hashlearn.core.threads import map_row_blocks, one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import MAX_COVARIANCE

Product: TypeAlias = Callable[[FloatArray], FloatArray]
OVERSAMPLED, POWER_ITERATIONS = 10, 4  # of the randomized SVD
ITERATIONS = 50  # of iterative quantization


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


def top_directions(scatter: FloatArray, count: int) -> FloatArray:
    """The eigenvectors of the ``count`` largest eigenvalues, largest first."""
    return with_fixed_signs(np.linalg.eigh(scatter)[1][:, ::-1][:, :count])


def filled_up(directions: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """At least ``count`` columns: random directions follow if there are fewer."""
    n_features, n_columns = directions.shape
    if n_columns >= count:
        return directions
    return np.hstack([directions, rng.standard_normal((n_features, count - n_columns))])


def signs_of_product(V: Any, R: FloatArray) -> Any:
    """sgn(V R) as ±1 in the dtype of V; sgn(0) = +1.

    >>> signs_of_product(np.array([[2.0, 0.0]]), np.array([[0.0, -1.0], [1.0, 0.0]]))
    array([[ 1., -1.]])
    """
    if not is_tensor(V):
        return np.where(V @ R < 0.0, -1.0, 1.0)
    import torch

    return torch.where(V @ tensor_like(R, V) < 0.0, -1.0, 1.0).to(V.dtype)


def random_rotation(n_bits: int, rng: np.random.Generator) -> FloatArray:
    """An orthogonal matrix, where `itq_rotation` begins."""
    return np.linalg.qr(rng.standard_normal((n_bits, n_bits)))[0]


def itq_rotation(V: Any, R: FloatArray, n_iter: int = ITERATIONS) -> tuple[FloatArray, list[float]]:
    """An orthogonal R that makes the quantization error ‖sgn(VR) − VR‖² small, and that error after each iteration.

    It begins from the R given, whose error is the first. Each iteration takes the signs B = sgn(VR) and then the R
    nearest to them (orthogonal Procrustes: VᵀB = UΣWᵀ, R = UWᵀ); neither step can raise the error.

    >>> start = random_rotation(2, np.random.default_rng(0))
    >>> R, errors = itq_rotation(np.array([[2.0, 0.0], [0.0, 2.0]]), start)
    >>> round(errors[-1], 6)
    0.686292
    """
    n, n_bits = V.shape
    squares = (V * V).sum()
    constant = n * n_bits + float(squares)
    products, size = _quantized(V, R)
    errors = [constant - 2.0 * size]
    for _ in range(n_iter):
        U, _, Wt = np.linalg.svd(products)
        R = U @ Wt
        products, size = _quantized(V, R)
        errors.append(constant - 2.0 * size)
    return R, errors


def _quantized(V: Any, R: FloatArray) -> tuple[FloatArray, float]:
    """Vᵀ sgn(V R) and the sum of |V R|."""
    if not is_tensor(V):
        rotated = V @ R
        products = V.T @ np.where(rotated < 0.0, -1.0, 1.0)
        return products, float(np.vdot(R, products))
    import torch

    from hashlearn.linalg.tensors import block_products

    rotated = V @ tensor_like(R, V)
    signs = torch.where(rotated < 0.0, -1.0, 1.0).to(V.dtype)
    return to_float64(block_products(V, signs)), float(rotated.abs().sum(dtype=torch.float64))
