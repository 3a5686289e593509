"""``"kernel_ridge"`` and ``"rbf_svm"``: all bits on one Gram matrix of the RBF kernel, or on landmarks.

The kernel is computed once, O(n² n_features). Kernel ridge is least squares on the codes ±1, all bits in one Cholesky
solve, O(n³/3). The support vector machines, one for each distinct bit, are solved by LibSVM (through scikit-learn) in
threads, because it releases the GIL. Only rows that support some bit are stored.

With more than ``max_gram_rows`` rows landmarks avoid the n × n Gram matrix: functions are combinations of m landmark
kernels (Nyström). Φ = K_nm L⁻ᵀ with LLᵀ = K_mm turns the kernel problem into a linear one with m features. Φ is
computed block by block of rows: O(n m (n_features + m + n_bits)). Ridge takes one pass; support vector machines have
the squared hinge there, all bits at once.

``alpha="loo"`` chooses the weight with the smallest leave-one-out errors. If f = K c with c = (K + αI)⁻¹ y, the error
at row i with that row left out is c_i / [(K + αI)⁻¹]_ii. One Cholesky factorization judges an α by every row and bit.
At most 1,000 rows are drawn for it: the best α depends on how noisy the codes are and hardly on n.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri
from sklearn.svm import SVC

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive, whole_number
from hashlearn.core.memory import FLOAT64_BYTES, memory_share
from hashlearn.core.threads import map_threads, one_blas_thread, sum_row_blocks
from hashlearn.core.thresholds import LARGEST_GRAM_ROWS
from hashlearn.hash_functions.fitted import Rows
from hashlearn.hash_functions.hash_function import HashFunction, Training, fit_each
from hashlearn.hash_functions.kernels import KernelExpansion, RBFPoints, check_gamma, choose_gamma
from hashlearn.linalg.positive_definite import PositiveDefinite

JITTER = 1e-6  # on the diagonal of K_mm, whose entries are 1: landmarks may be equal
MEMORY_FOR_GRAM = 2  # quarters of the memory that a Gram matrix may take

ALPHAS = (0.1, 0.03, 0.3, 0.01, 1.0)  # candidates of "loo"; the first of equals wins
MOST_ROWS = 1000
FEWEST_ROWS = 20

CACHE_MEGABYTES = 500  # of LibSVM
FLOAT32_BYTES = 4
FREE_INTERCEPT = 1e-6  # weight of the intercept's square relative to a coefficient's
PASSES = 15  # the first is ridge regression: 96.3 % of an exact SVM's MNIST bits with 300 landmarks, ten: 97.0 %
SETTLED = 1e-3  # relative change of the weights that ends the passes

BlockFunction = Callable[[int, int], FloatArray]

log = logging.getLogger(__name__)


class KernelMethod(HashFunction):
    """A method with the kernel exp(−γ‖x − x'‖²)."""

    gamma: float | str
    max_gram_rows: int | None
    n_landmarks: int
    title: ClassVar[str]

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

    def _fit(self, data: Training) -> KernelExpansion:
        with one_blas_thread():
            gamma, origin = choose_gamma(self.gamma, data.X, data.rng)
            points, coefficients, intercepts, words = self._solved(data, gamma)
        title = f"{self.title}, gamma={gamma:.4g} ({origin}), {words}, {data.bits.describe()}"
        return KernelExpansion(points, gamma, coefficients, intercepts, data.bits, title)

    @abstractmethod
    def _solved(self, data: Training, gamma: float) -> tuple[Rows, FloatArray, FloatArray, str]:
        """Points of the kernel, coefficients, intercepts, and what was done in words."""

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
    title: ClassVar[str] = "kernel ridge"

    def __post_init__(self) -> None:
        if isinstance(self.alpha, str) and self.alpha != "loo":
            raise ValueError(f"alpha must be a positive number or 'loo', got {self.alpha!r}")
        if not isinstance(self.alpha, str):
            positive(self.alpha, "alpha")
        self._check_kernel()

    def _solved(self, data: Training, gamma: float) -> tuple[Rows, FloatArray, FloatArray, str]:
        """There is one solve, so ``n_jobs`` changes nothing."""
        X, y = data.X, data.codes
        alpha = self.weight(X, y, gamma, data.rng)
        words = f"alpha={alpha:.4g}"
        if (drawn := self._landmarks(data, gamma)) is not None:
            landmarks, reason = drawn
            sums = sum_row_blocks(lambda a, b: landmarks.sums(X[a:b], y[a:b]), X.shape[0])
            points, coefficients, words = landmarks.rows, landmarks.ridge(sums, alpha), f"{words}, {reason}"
        else:
            points = X if data.bits.n_distinct else X[:0]
            coefficients = _ridge(RBFPoints(points, gamma), y[: points.shape[0]], alpha)
        data.tell_done()
        return points, coefficients, np.zeros(data.bits.n_distinct), words

    def weight(self, X: Rows, codes: NDArray[np.int8], gamma: float, rng: np.random.Generator) -> float:
        """α as it is given, or chosen for these codes."""
        return alpha_by_leave_one_out(X, codes, gamma, rng) if isinstance(self.alpha, str) else float(self.alpha)


@dataclass(frozen=True)
class RBFSVM(KernelMethod):
    """Support vector machines with the kernel exp(−γ‖x − x'‖²).

    Parameters
    ----------
    C : weight of the hinge loss
    gamma : "neighbors", "scale" (see `kernels`), or a positive number
    tol : LibSVM's stopping tolerance
    max_gram_rows : with more rows than this, Nyström landmarks replace the Gram matrix; None: 20,000.
        A matrix that takes more than half of the machine's memory is refused
    n_landmarks : number of rows drawn as landmarks then; the loss becomes the squared hinge, all bits in one solve

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [4.0], [5.0]])
    >>> codes = np.array([[-1, 1], [-1, 1], [1, -1], [1, -1]], dtype=np.int8)
    >>> functions = RBFSVM(gamma=0.5).fit(X, codes, np.random.default_rng(0))
    >>> functions.decision_function(X) >= 0
    array([[False,  True],
           [False,  True],
           [ True, False],
           [ True, False]])
    >>> functions.description
    'RBF-SVM, gamma=0.5 (given), C=10, 4 support vectors, 1 of 2 bits fitted (1 repeated or complementary)'
    """

    C: float = 10.0
    gamma: float | str = "neighbors"
    tol: float = 1e-3
    max_gram_rows: int | None = None
    n_landmarks: int = 3000

    name: ClassVar[str] = "rbf_svm"
    title: ClassVar[str] = "RBF-SVM"

    def __post_init__(self) -> None:
        positive(self.C, "C")
        positive(self.tol, "tol")
        self._check_kernel()

    def _solved(self, data: Training, gamma: float) -> tuple[Rows, FloatArray, FloatArray, str]:
        words = f"C={self.C:.4g}"
        if (drawn := self._landmarks(data, gamma)) is not None:
            landmarks, reason = drawn
            coefficients, intercepts = landmark_svm(landmarks, data.X, data.codes, self.C)
            data.tell_done()
            return landmarks.rows, coefficients, intercepts, f"{words}, {reason}"
        if data.bits.n_distinct == 0:
            return data.X[:0], np.zeros((0, 0)), np.zeros(0), f"{words}, 0 support vectors"
        K = RBFPoints(data.X, gamma).gram()

        def fit_one(y: NDArray[np.int8]) -> SVC:
            return SVC(kernel="precomputed", C=self.C, tol=self.tol, cache_size=CACHE_MEGABYTES).fit(K, y)

        machines = fit_each(fit_one, list(data.codes.T), data)
        coefficients = np.zeros((len(K), len(machines)))
        for column, machine in zip(coefficients.T, machines, strict=True):
            column[machine.support_] = machine.dual_coef_.ravel()
        intercepts = np.array([machine.intercept_[0] for machine in machines])
        support = np.flatnonzero(coefficients.any(axis=1))
        return data.X[support], coefficients[support], intercepts, f"{words}, {len(support)} support vectors"


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


def landmark_svm(landmarks: Landmarks, X: Rows, codes: NDArray[np.int8], C: float) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercepts that minimize ½‖f‖² + C Σ max(0, 1 − y f)², all bits together.

    The features Φ are rounded to float32 and cached if they fit into a quarter of the memory. Else every pass computes
    them again, to the same numbers.
    """
    n, m = X.shape[0], landmarks.m
    cache = np.empty((n, m), np.float32) if FLOAT32_BYTES * n * m <= memory_share() else None

    def rows(first: int, last: int) -> NDArray[np.float32]:
        return landmarks.features(X[first:last]).astype(np.float32) if cache is None else cache[first:last]

    def squares(first: int, last: int) -> FloatArray:
        block = landmarks.features(X[first:last])
        if cache is not None:
            cache[first:last] = block
        block = np.hstack([block, np.ones((last - first, 1))])  # the ones belong to the intercept
        return block.T @ block

    penalties = np.full(m + 1, 0.5 / C)
    penalties[m] *= FREE_INTERCEPT
    svm = SquaredHinge(rows, sum_row_blocks(squares, n), penalties, lambda function: sum_row_blocks(function, n))
    W = svm.fit(codes, np.zeros((m + 1, codes.shape[1])), PASSES, SETTLED)
    return landmarks.coefficients(W[:m]), W[m]


class SquaredHinge:
    """For every bit y: min ½ Σ_j p_j w_j² + ½ Σ_i max(0, 1 − y_i f(x_i))², with f(x) = xᵀw and an intercept.

    The curvature of every bit is at most H = XᵀX + Diag(p), that of ridge regression. One Cholesky factor of H gives
    steps that lower the loss of every bit; the first from 0 is ridge regression itself. With momentum a few steps are
    enough. A step is two products with the rows.

    Parameters
    ----------
    rows : ``rows(first, last)`` are rows of X
    gram : XᵀX for rows with a last entry 1, which belongs to the intercept
    penalties : p, the last one of the intercept
    sum_blocks : the sum of a function of (first, last) over blocks of all rows
    """

    def __init__(
        self,
        rows: Callable[[int, int], NDArray[Any]],
        gram: FloatArray,
        penalties: FloatArray,
        sum_blocks: Callable[[BlockFunction], FloatArray],
    ) -> None:
        self.rows, self.penalties, self.sum_blocks = rows, penalties[:, None], sum_blocks
        self.factor = cho_factor(gram + np.diag(penalties), lower=True, overwrite_a=True)

    def fit(self, codes: NDArray[np.int8], W: FloatArray, n_steps: int, tol: float = 0.0) -> FloatArray:
        """Weights (n_features + 1, n_bits) after ``n_steps`` from W, fewer if one changes them by ``tol`` at most."""
        ahead, momentum = W, 1.0
        for _ in range(n_steps):
            slope = self.penalties * ahead - self.sum_blocks(partial(self._descent, codes, ahead))
            last, W = W, ahead - cho_solve(self.factor, slope)
            change = W - last
            if np.linalg.norm(change) <= tol * np.linalg.norm(W):
                break
            if float(np.vdot(slope, change)) > 0.0:  # the momentum points uphill: restart it
                momentum = 1.0
            last_momentum, momentum = momentum, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            ahead = W + (last_momentum - 1.0) / momentum * change
        return W

    def _descent(self, codes: NDArray[np.int8], W: FloatArray, first: int, last: int) -> FloatArray:
        """Minus the gradient of the loss over a block of rows."""
        rows = self.rows(first, last)
        y, narrow = codes[first:last].astype(rows.dtype), W.astype(rows.dtype)
        descent = y * np.maximum(1.0 - y * (rows @ narrow[:-1] + narrow[-1]), 0.0)
        return np.vstack([rows.T @ descent, descent.sum(axis=0)]).astype(np.float64)


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
