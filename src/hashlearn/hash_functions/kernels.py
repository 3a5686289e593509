"""The RBF kernel exp(−γ‖x − s‖²) with a fixed set of points: its values, functions that combine them, and rules for γ.

With z = √(2γ) (x − center), and s likewise, −γ‖x − s‖² = z·s − ‖z‖²/2 − ‖s‖²/2. The center is the mean of the points.
It changes no distance, but without it features far from zero would lose digits in the difference. Sparse points are
not centered and stay sparse.

A panel of rows costs one product with the points, one exp in place, and one product with the coefficients.

γ is a number, or one of these rules:
``"neighbors"`` 1 / mean squared distance to the 50 nearest neighbors, the rule of the two-step literature
``"scale"``     1 / (n_features · variance of all entries of X), scikit-learn's
``"mean"``      1 / (2 · mean squared distance between rows), that of KSH

Distances are those of at most 500 rows, drawn with the generator, to all rows: O(n · n_features).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray, is_tensor, tensor_like
from hashlearn.core.checks import positive
from hashlearn.core.threads import map_row_blocks, map_threads, one_blas_thread, sum_row_blocks
from hashlearn.hash_functions.distinct_bits import DistinctBits, every_bit
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction, Rows, Stored, full_panel
from hashlearn.linalg.gram import column_means, product, products

GRAM_BLOCK = 512  # rows of one product
NEIGHBORS = 50
SAMPLED_ROWS = 500
RULES = {"neighbors": "50-NN rule", "scale": "scale rule", "mean": "mean rule"}
# A squared distance below this fraction of the squared norms is rounding: the rows are equal.
ROUNDING = 1e-13


class RBFPoints:
    """Points s_1 … s_m, centered and scaled, in one dtype."""

    def __init__(self, points: Rows, gamma: float, dtype: Any = np.float64) -> None:
        self.sparse = sp.issparse(points)
        self.dtype = np.dtype(dtype)
        self.factor = float(np.sqrt(2.0 * gamma))
        mean = None if self.sparse else np.asarray(points.sum(axis=0, dtype=np.float64)) / max(len(points), 1)
        self.center = None if mean is None else mean.astype(self.dtype)
        scaled = self._scaled(points.astype(np.float64))
        self.half_norms = (0.5 * _squared_norms(scaled)).astype(self.dtype)
        self.scaled = scaled.astype(self.dtype)

    def as_tensors(self, like: Any) -> RBFPoints:
        """The same points as tensors on the device of ``like`` and in its dtype: `kernel` then takes tensors."""
        moved = copy(self)
        moved.center, moved.half_norms, moved.scaled = (
            tensor_like(part, like) for part in (self.center, self.half_norms, self.scaled)
        )
        return moved

    def kernel(self, rows: Rows) -> NDArray[Any]:
        """Kernel values of rows × points, in the dtype of the points. ``rows`` are CSR if the points are sparse."""
        if self.sparse:
            rows = sp.csr_array(rows)
        z = self._scaled(rows if is_tensor(rows) else rows.astype(self.dtype, copy=False))
        return self._exponential(z, 0.5 * _squared_norms(z), slice(None))

    def block(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Kernel values of some points × some points. A block on the diagonal is symmetric and has ones there."""
        K = self._exponential(self.scaled[rows], self.half_norms[rows], columns)
        if rows == columns:
            K = 0.5 * (K + K.T)
            np.fill_diagonal(K, 1.0)
        return K

    def gram(self) -> NDArray[Any]:
        """Kernel values of points × points: symmetric, with ones on the diagonal. Each pair is computed once."""
        m = self.scaled.shape[0]
        K = np.empty((m, m), dtype=self.dtype)
        parts = [slice(first, min(first + GRAM_BLOCK, m)) for first in range(0, m, GRAM_BLOCK)]

        def fill(pair: tuple[slice, slice]) -> None:
            rows, columns = pair
            K[rows, columns] = block = self.block(rows, columns)
            K[columns, rows] = block.T

        with one_blas_thread():
            list(map_threads(fill, combinations_with_replacement(parts, 2)))
        return K

    def _scaled(self, rows: Rows) -> Rows:
        if self.center is None:
            return rows * rows.dtype.type(self.factor)
        z = rows - self.center
        z *= self.factor
        return z

    def _exponential(self, z: Rows, half_norms: NDArray[Any], points: slice) -> NDArray[Any]:
        K = z @ self.scaled[points].T
        if self.sparse:
            K = K.toarray()
        K -= half_norms[:, None]
        K -= self.half_norms[points]
        if is_tensor(K):
            return K.clamp_(max=0.0).exp_()
        np.minimum(K, 0.0, out=K)  # rounding must not make a distance negative
        return np.exp(K, out=K)


def _squared_norms(rows: Rows) -> NDArray[Any]:
    if sp.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=rows.dtype).ravel()
    return (rows * rows).sum(axis=1)


@dataclass(eq=False)
class KernelExpansion(FittedHashFunctions):
    """The margin of bit b at x is Σ_i coefficients[i, b] k(x, points[i]) + intercepts[b], for each distinct bit."""

    kind = "kernel_expansion"

    points: Annotated[Rows, Stored("n_points", "n_features", kind="rows")]
    gamma: Annotated[float, Stored(kind="number")]
    coefficients: Annotated[FloatArray, Stored("n_points", "n_distinct")]
    intercepts: Annotated[FloatArray, Stored("n_distinct")]
    bits: DistinctBits
    description: str

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        points = RBFPoints(self.points, self.gamma, dtype)
        coefficients, intercepts = self.coefficients.astype(dtype), self.intercepts.astype(dtype)
        if points.sparse:
            return lambda panel: full_panel(points.kernel(panel)) @ coefficients + intercepts, [coefficients]
        factors = [points.scaled.T, coefficients]
        return lambda panel: points.kernel(full_panel(panel)) @ coefficients + intercepts, factors

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        if sp.issparse(self.points):
            return super()._tensor_function(X)
        points = RBFPoints(self.points, self.gamma).as_tensors(X)
        coefficients, intercepts = tensor_like(self.coefficients, X), tensor_like(self.intercepts, X)
        return lambda rows: points.kernel(rows) @ coefficients + intercepts, len(self.coefficients)


def check_gamma(gamma: Any) -> None:
    """Refuse a value that is neither a rule nor a positive number."""
    if isinstance(gamma, str):
        if gamma not in RULES:
            rules = ", ".join(f"'{name}'" for name in RULES)
            raise ValueError(f"gamma must be a positive number or one of {rules}, got {gamma!r}")
        return
    positive(gamma, "gamma")


def choose_gamma(gamma: float | str, X: Rows, rng: np.random.Generator) -> tuple[float, str]:
    """γ and its source in words; γ is 1 if all distances are zero."""
    check_gamma(gamma)
    if not isinstance(gamma, str):
        return float(gamma), "given"
    if gamma == "mean":
        size = 4.0 * _variance(X, 0)  # the mean squared distance is twice the sum of the columns' variances
    else:
        size = X.shape[1] * _variance(X) if gamma == "scale" else _typical_squared_distance(X, rng)
    with np.errstate(over="ignore", divide="ignore"):
        value = float(1.0 / np.float64(size))
    return (value, RULES[gamma]) if 0.0 < value < np.inf else (1.0, f"{RULES[gamma]}, all rows equal")


def _typical_squared_distance(X: Rows, rng: np.random.Generator) -> float:
    """The mean to the nearest neighbors; if all of them are copies, the median between rows, or their mean."""
    n = X.shape[0]
    if n < 2:
        return 0.0
    sample = np.arange(n) if n <= SAMPLED_ROWS else np.sort(rng.choice(n, SAMPLED_ROWS, replace=False))
    center = 0.0 if sp.issparse(X) else column_means(X)

    def centered(part: Any) -> Rows:
        rows = X[part].astype(np.float64)
        return rows if sp.issparse(rows) else rows - center

    queries, count = centered(sample), min(NEIGHBORS + 1, n)  # the nearest row is the query itself

    def nearest(first: int, last: int) -> FloatArray:
        squares = _squared_distances(queries, centered(slice(first, last)))
        return np.partition(squares, min(count, last - first) - 1, axis=1)[:, :count]

    near = np.sort(np.hstack(map_row_blocks(nearest, n, X.shape[1])), axis=1)[:, 1:count]
    if (size := float(near.mean())) > 0.0:
        return size
    apart = _squared_distances(queries, queries)[np.triu_indices(len(sample), 1)]
    return float(np.median(apart)) or float(apart.mean())


def _squared_distances(A: Rows, B: Rows) -> FloatArray:
    """Between all rows of A and of B; what is nothing but rounding becomes 0."""
    norms, products = _squared_norms(A)[:, None], A @ B.T
    squares = norms + _squared_norms(B) - 2.0 * (products.toarray() if sp.issparse(products) else products)
    squares[squares <= ROUNDING * norms] = 0.0
    return np.asarray(squares)


def _variance(X: Rows, axis: int | None = None) -> float:
    """The variance of all entries, or with axis 0 the sum of those of the columns."""
    if not sp.issparse(X):
        return float(X.var(axis=axis, dtype=np.float64).sum())
    mean = np.asarray(X.mean(axis=axis, dtype=np.float64))
    size = X.shape[0] * (X.shape[1] if axis is None else 1)
    return max(float(np.square(X.data, dtype=np.float64).sum()) / size - float(np.square(mean).sum()), 0.0)


class AnchorKernel:
    """k(x)_j = exp(−γ‖x − a_j‖²) minus its mean over the rows, for anchors a_j = X[index[j]].

    These are the features of KSH, SDH and BRE. The values of all rows are stored, an n × n_anchors array. Products are
    computed by blocks of rows on all cores and added in block order, so the number of threads changes nothing.
    """

    def __init__(self, X: Any, index: NDArray[np.intp], gamma: float, origin: str = "given") -> None:
        self.anchors, self.gamma, self.origin = X[index], gamma, origin
        self.n, self.m = X.shape[0], len(index)
        points = RBFPoints(self.anchors, gamma)
        self.values = np.empty((self.n, self.m))

        def fill(first: int, last: int) -> FloatArray:
            for a in range(first, last, GRAM_BLOCK):
                b = min(a + GRAM_BLOCK, last)
                self.values[a:b] = points.kernel(X[a:b])
            return self.values[first:last].sum(axis=0)

        self.mean = sum_row_blocks(fill, self.n, self.m) / self.n
        self.values -= self.mean

    def project(self, coefficients: FloatArray) -> FloatArray:
        """K @ coefficients, for one column (m,) or several (m, k)."""
        return product(self.values, coefficients)

    def moment(self, rows: FloatArray) -> FloatArray:
        """Kᵀ @ rows, for rows (n,) or (n, k)."""
        return products(self.values, rows)

    def gram(self, ridge: float = 0.0) -> FloatArray:
        """The Gram matrix KᵀK of the features, plus ``ridge`` on its diagonal."""
        gram = products(self.values)
        gram[np.diag_indices_from(gram)] += ridge
        return gram

    def functions(self, coefficients: FloatArray, intercepts: FloatArray | float, method: str) -> KernelExpansion:
        """Margins k(x) @ coefficients + intercepts."""
        offsets = intercepts - self.mean @ coefficients
        title = f"{method}, gamma={self.gamma:.4g} ({self.origin}), {self.m} anchors"
        return KernelExpansion(self.anchors, self.gamma, coefficients, offsets, every_bit(coefficients.shape[1]), title)


def anchor_kernel(X: Any, n_anchors: int, gamma: float | str, rng: np.random.Generator) -> AnchorKernel:
    """The kernel against ``n_anchors`` rows, or all if there are fewer; ``gamma`` as in `choose_gamma`."""
    value, origin = choose_gamma(gamma, X, rng)
    return AnchorKernel(X, draw_anchors(X.shape[0], n_anchors, rng), value, origin)


def draw_anchors(n: int, n_anchors: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``n_anchors`` different rows (all, if there are fewer), in ascending order."""
    return np.sort(rng.choice(n, min(n_anchors, n), replace=False)).astype(np.intp)
