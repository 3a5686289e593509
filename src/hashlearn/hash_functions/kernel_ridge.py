"""``"kernel_ridge"``: least squares on the codes ±1 with the RBF kernel, all bits in one Cholesky solve.

O(n² n_features + n³/3). With more than ``max_gram_rows`` rows landmarks avoid the n × n Gram matrix: functions are
combinations of m landmark kernels (Nyström). Φ = K_nm L⁻ᵀ with LLᵀ = K_mm turns the kernel problem into a linear one
with m features. Φ is computed block by block of rows, in one pass: O(n m (n_features + m + n_bits)).

``alpha="loo"`` chooses the weight with the smallest leave-one-out errors. If f = K c with c = (K + αI)⁻¹ y, the error
at row i with that row left out is c_i / [(K + αI)⁻¹]_ii. One Cholesky factorization judges an α by every row and bit.
At most 1,000 rows are drawn for it: the best α depends on how noisy the codes are and hardly on n.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive, whole_number
from hashlearn.core.memory import FLOAT64_BYTES, memory_share
from hashlearn.core.threads import map_threads, one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import LARGEST_GRAM_ROWS
from hashlearn.hash_functions.fitted import Rows
from hashlearn.hash_functions.hash_function import HashFunction, Training
from hashlearn.hash_functions.kernels import KernelExpansion, RBFPoints, check_gamma, choose_gamma
from hashlearn.linalg.positive_definite import PositiveDefinite

ALPHAS = (0.1, 0.03, 0.3, 0.01, 1.0)  # candidates of "loo"; the first of equals wins
MOST_ROWS = 1000
FEWEST_ROWS = 20

JITTER = 1e-6  # on the diagonal of K_mm, whose entries are 1: landmarks may be equal
MEMORY_FOR_GRAM = 2  # quarters of the memory that a Gram matrix may take

log = logging.getLogger(__name__)


class KernelMethod(HashFunction):
    """A method with the kernel exp(−γ‖x − x'‖²)."""

    gamma: float | str
    max_gram_rows: int | None
    n_landmarks: int

    def require_rows(self, X: Rows) -> None:
        """Refuse a Gram matrix that takes more than half of this machine's memory."""
        n, most = X.shape[0], isqrt(MEMORY_FOR_GRAM * memory_share() // FLOAT64_BYTES)
        if most < n <= self._most_gram_rows():
            size = f"{FLOAT64_BYTES * n * n / 1e9:,.1f} GB, more than half of this machine's memory"
            raise MemoryError(
                f"{self.name}: the Gram matrix of {n:,} rows takes {size}; max_gram_rows={most} or less gives "
                "landmarks instead of the matrix"
            )

    def _most_gram_rows(self) -> int:
        return LARGEST_GRAM_ROWS if self.max_gram_rows is None else self.max_gram_rows

    def _check_kernel(self) -> None:
        check_gamma(self.gamma)
        if self.max_gram_rows is not None:
            whole_number(self.max_gram_rows, "max_gram_rows", least=1)
        whole_number(self.n_landmarks, "n_landmarks", least=1)

    def _landmarks(self, data: Training, gamma: float) -> tuple[Landmarks, str] | None:
        """Landmarks drawn from the rows, and why they are used; None if the Gram matrix is small enough."""
        n, limit = data.X.shape[0], self._most_gram_rows()
        if n <= limit or data.bits.n_distinct == 0:
            return None
        drawn = np.sort(data.rng.choice(n, min(self.n_landmarks, n), replace=False))
        reason = f"{len(drawn)} Nyström landmarks because {n} rows are more than {limit}"
        log.info("%s: %s", self.name, reason)
        return Landmarks(data.X[drawn], gamma), reason


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
            if (many := self._landmarks(data, gamma)) is not None:
                landmarks, reason = many
                sums = sum_row_blocks(lambda a, b: landmarks.sums(X[a:b], y[a:b]), X.shape[0])
                points, coefficients = landmarks.rows, landmarks.ridge(sums, alpha)
                title = f"{title}, {reason}"
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


class Landmarks:
    """Landmark rows, and the map from any rows to their features Φ."""

    def __init__(self, rows: Rows, gamma: float) -> None:
        self.rows = rows
        self.points = RBFPoints(rows, gamma)
        K = self.points.gram()
        K[np.diag_indices_from(K)] += JITTER
        self.factor = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        self.m = len(K)

    def features(self, rows: Rows) -> FloatArray:
        """Φ of the given rows."""
        K = self.points.kernel(rows)
        return solve_triangular(self.factor, K.T, lower=True, overwrite_b=True, check_finite=False).T

    def coefficients(self, weights: FloatArray) -> FloatArray:
        """Coefficients of the landmark kernels, from weights of the features."""
        return solve_triangular(self.factor, weights, lower=True, trans="T", check_finite=False)

    def sums(self, rows: Rows, codes: NDArray[Any]) -> FloatArray:
        """[ΦᵀΦ, Φᵀy] of some rows and their codes; what ridge regression on all rows needs is their sum."""
        block = self.features(rows)
        return np.hstack([block.T @ block, block.T @ codes])

    def ridge(self, sums: FloatArray, alpha: float) -> FloatArray:
        """Coefficients that minimize Σ (y − f)² + alpha ‖f‖², all bits in one Cholesky solve."""
        H = sums[:, : self.m] + alpha * np.eye(self.m)
        return self.coefficients(cho_solve(cho_factor(H, lower=True, overwrite_a=True), sums[:, self.m :]))
