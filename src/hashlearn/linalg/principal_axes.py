"""Principal axes of X, rotations of its scores, and leading eigenvectors of a sparse matrix.

Principal axes are a linear map that can be stored and applied to new samples. Up to `MAX_COVARIANCE` features the
covariance is formed and decomposed, O(n · n_features²); a sparse X is made dense in blocks of rows. Beyond, a
randomized SVD is used, and a sparse X stays sparse: products subtract the mean afterwards, O(nnz · n_components). The
blocks depend on n alone, so the number of threads has no effect.

The rotation is that of iterative quantization (Gong and Lazebnik, CVPR 2011), O(n · n_bits²) for each iteration. Rows
that are rotated may be PyTorch tensors; the rotation is a float64 NumPy array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from hashlearn.core.arrays import FloatArray, is_tensor, tensor_like, to_float64
from hashlearn.core.threads import map_row_blocks, map_threads, one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import MAX_COVARIANCE

Product: TypeAlias = Callable[[FloatArray], FloatArray]
OVERSAMPLED, POWER_ITERATIONS = 10, 4  # of the randomized SVD
ITERATIONS = 50  # of iterative quantization
GUARDS = 16  # more vectors than asked for; the last ones converge slowly
FILTER_DEGREES = (10, 20, 30, 40, 40, 40)  # round by round
FILTER_ROWS = 8192
SETTLED = 1e-3  # largest change of a leading eigenvalue from one round to the next


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


def leading_eigenvectors(
    A: csr_array, count: int, known: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The ``count`` largest eigenvalues of a sparse matrix, largest first, and their vectors as columns.

    This is subspace iteration with a Chebyshev filter (Zhou et al. 2006). A polynomial of the matrix multiplies a block
    of vectors. It is small on the rest of the spectrum and grows fast beyond, so a few blocks of products replace
    thousands of single ones. O(nnz · count) a product, in float32.

    Accuracy is that of eigenvalues to about 1e-3. If many eigenvalues are equal to that accuracy, as in graphs of many
    small parts, the vectors are an orthonormal basis of part of their common space.

    Parameters
    ----------
    A : symmetric, with all eigenvalues from −1 to 1
    count : at most the number of rows minus 17
    known : an eigenvector of length 1 that is left out

    >>> A = csr_array(np.diag(np.linspace(-0.5, 0.5, 300)))
    >>> known = np.eye(300)[299]
    >>> leading_eigenvectors(A, 2, known, np.random.default_rng(0))[0].round(3)
    array([0.497, 0.493])
    """
    known32 = known.astype(np.float32)[:, None]
    rows = [slice(first, min(first + FILTER_ROWS, A.shape[0])) for first in range(0, A.shape[0], FILTER_ROWS)]
    blocks = [A[part].astype(np.float32) for part in rows]

    def combined(V: NDArray[Any], a: float, b: float, W: NDArray[Any] | None) -> NDArray[Any]:
        """a (A V) + b V − W."""
        result = np.empty_like(V)

        def fill(number: int) -> None:
            part = rows[number]
            product = blocks[number] @ V
            product *= a
            if b:
                product += b * V[part]
            if W is not None:
                product -= W[part]
            result[part] = product

        list(map_threads(fill, range(len(rows))))
        return result

    def orthonormal(V: NDArray[Any]) -> NDArray[Any]:
        V = V / np.abs(V).max(axis=0)
        V -= known32 @ (known32.T @ V)
        basis: NDArray[Any] = np.linalg.qr(V)[0]
        return basis

    with one_blas_thread():
        V = orthonormal(rng.standard_normal((A.shape[0], count + GUARDS), dtype=np.float32))
        before = np.full(count, np.inf)
        for degree in (*FILTER_DEGREES, 0):
            H = (V.T @ combined(V, 1.0, 0.0, None)).astype(np.float64)
            values, Q = np.linalg.eigh(0.5 * (H + H.T))
            V = V @ Q.astype(np.float32)
            leading = values[::-1][:count]
            if degree == 0 or np.abs(leading - before).max() < SETTLED:
                break
            before = leading
            # The filter maps [−1, smallest Ritz value] to [−1, 1], where Chebyshev polynomials are small.
            middle, half = 0.5 * (values[0] - 1.0), max(0.5 * (values[0] + 1.0), 0.1)
            earlier, V = V, combined(V, 1.0 / half, -middle / half, None)
            for _ in range(degree - 1):
                earlier, V = V, combined(V, 2.0 / half, -2.0 * middle / half, earlier)
                size = np.float32(np.abs(V[:FILTER_ROWS]).max() or 1.0)
                if size > 1e10:
                    earlier /= size
                    V /= size
            V = orthonormal(V)
    return leading, np.ascontiguousarray(V[:, ::-1][:, :count], dtype=np.float64)
