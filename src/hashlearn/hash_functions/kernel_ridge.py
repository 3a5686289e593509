"""``"kernel_ridge"``: least squares on the codes ±1 with the RBF kernel, all bits in one Cholesky solve.

O(n² n_features + n³/3); with more than `max_gram_rows` rows Nyström landmarks are used, linear in n.

``alpha="loo"`` chooses the weight with the smallest leave-one-out errors. If f = K c with c = (K + αI)⁻¹ y, the error
at row i with that row left out is c_i / [(K + αI)⁻¹]_ii. One Cholesky factorization judges an α by every row and bit.
At most 1,000 rows are drawn for it: the best α depends on how noisy the codes are and hardly on n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive
from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.hash_functions.base import Training
from hashlearn.hash_functions.expansion import KernelExpansion
from hashlearn.hash_functions.fitted import Rows
from hashlearn.hash_functions.kernel_method import KernelMethod, nystroem_ridge
from hashlearn.hash_functions.kernels import RBFPoints, choose_gamma
from hashlearn.linalg.positive_definite import PositiveDefinite

ALPHAS = (0.1, 0.03, 0.3, 0.01, 1.0)  # candidates of "loo"; the first of equals wins
MOST_ROWS = 1000
FEWEST_ROWS = 20


@dataclass(frozen=True)
class KernelRidge(KernelMethod):
    """Minimize Σ (y − f(x))² + alpha ‖f‖² with the kernel exp(−γ‖x − x'‖²): coefficients (K + alpha I)⁻¹ y.

    Parameters
    ----------
    alpha : weight of ‖f‖², or "loo": the best of five by leave-one-out errors
    gamma : "neighbors", "scale" (see `kernels`), or a positive number
    max_gram_rows : with more rows than this, Nyström landmarks replace the Gram matrix; None: 20,000.
        A matrix that takes more than half of the machine's memory is refused
    n_landmarks : number of rows drawn as landmarks then
    """

    alpha: float | str = "loo"
    gamma: float | str = "neighbors"
    max_gram_rows: int | None = None
    n_landmarks: int = 3000

    name: ClassVar[str] = "kernel_ridge"

    def __post_init__(self) -> None:
        if isinstance(self.alpha, str) and self.alpha != "loo":
            raise ValueError(f"alpha must be a positive number or 'loo', got {self.alpha!r}")
        if not isinstance(self.alpha, str):
            positive(self.alpha, "alpha")
        self._check_kernel()

    def _fit(self, data: Training) -> KernelExpansion:
        """There is one solve, so ``n_jobs`` changes nothing."""
        X, y, bits = data.X, data.codes, data.bits
        with one_blas_thread():
            gamma, origin = choose_gamma(self.gamma, X, data.rng)
            alpha = self.weight(X, y, gamma, data.rng)
            title = f"kernel ridge, gamma={gamma:.4g} ({origin}), alpha={alpha:.4g}"
            many = self._landmarks(data, gamma)
            if many is not None:
                points, coefficients = many[0].landmarks, nystroem_ridge(many[0], y, alpha)
                title = f"{title}, {many[1]}"
            else:
                points = X if bits.n_distinct else X[:0]
                coefficients = _ridge(RBFPoints(points, gamma), y[: points.shape[0]], alpha)
        data.tell_done()
        intercepts = np.zeros(bits.n_distinct)
        return KernelExpansion(points, gamma, coefficients, intercepts, bits, f"{title}, {bits.describe()}")

    def weight(self, X: Rows, codes: NDArray[np.int8], gamma: float, rng: np.random.Generator) -> float:
        """α as it is given, or chosen for these codes."""
        return alpha_by_leave_one_out(X, codes, gamma, rng) if isinstance(self.alpha, str) else float(self.alpha)


def _ridge(points: RBFPoints, y: NDArray[np.int8], alpha: float) -> FloatArray:
    """(K + alpha I)⁻¹ y."""

    def block(rows: slice, columns: slice) -> FloatArray:
        K = points.block(rows, columns)
        if rows == columns:
            K[np.diag_indices_from(K)] += alpha
        return K

    return PositiveDefinite(len(y), block).solve(y)


def leave_one_out_errors(K: FloatArray, y: NDArray[np.floating], alpha: float) -> FloatArray:
    """y_i − f_i(x_i), with f_i fitted to all rows but i; the shape of y.

    >>> leave_one_out_errors(np.eye(2), np.array([[1.0], [-1.0]]), 0.5)  # rows without any similarity
    array([[ 1.],
           [-1.]])
    """
    factor = cholesky(K + alpha * np.eye(len(K)), lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = dtrtri(factor, lower=True, overwrite_c=True)  # (K + alpha I)⁻¹ = inverseᵀ inverse
    return (inverse.T @ (inverse @ y)) / np.einsum("ij,ij->j", inverse, inverse)[:, None]


def alpha_by_leave_one_out(X: Rows, codes: NDArray[np.int8], gamma: float, rng: np.random.Generator) -> float:
    """The α of `ALPHAS` with the smallest mean squared error; the first if there are too few rows or no bits."""
    n = X.shape[0]
    if n < FEWEST_ROWS or codes.shape[1] == 0:
        return ALPHAS[0]
    rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    K, y = RBFPoints(X[rows], gamma).gram(), codes[rows].astype(np.float64)
    errors = [*map_threads(lambda alpha: float(np.mean(leave_one_out_errors(K, y, alpha) ** 2)), ALPHAS)]
    return ALPHAS[int(np.argmin(errors))]
