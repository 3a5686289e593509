"""``"rbf_svm"``: one support vector machine for each distinct bit, all on one Gram matrix.

The kernel is computed once, O(n² n_features). LibSVM (through scikit-learn) solves each bit on it, in threads, because
it releases the GIL. Only rows that support some bit are stored. With more than `max_gram_rows` rows Nyström landmarks
are used, linear in n, and the loss is the squared hinge, for all bits at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.svm import SVC

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive
from hashlearn.core.memory import memory_share
from hashlearn.core.threads import one_blas_thread, sum_row_blocks
from hashlearn.hash_functions.fitted import Rows
from hashlearn.hash_functions.hash_function import Training, fit_each
from hashlearn.hash_functions.kernel_ridge import KernelMethod, Landmarks
from hashlearn.hash_functions.kernels import KernelExpansion, RBFPoints, choose_gamma

CACHE_MEGABYTES = 500
FLOAT32_BYTES = 4
FREE_INTERCEPT = 1e-6  # weight of the intercept's square relative to a coefficient's
PASSES = 15  # the first is ridge regression: 96.3 % of an exact SVM's MNIST bits with 300 landmarks, ten: 97.0 %
SETTLED = 1e-3  # relative change of the weights that ends the passes

BlockFunction = Callable[[int, int], FloatArray]


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

    def __post_init__(self) -> None:
        positive(self.C, "C")
        positive(self.tol, "tol")
        self._check_kernel()

    def _fit(self, data: Training) -> KernelExpansion:
        with one_blas_thread():
            gamma, origin = choose_gamma(self.gamma, data.X, data.rng)
            if (many := self._landmarks(data, gamma)) is not None:
                landmarks, words = many
                points = landmarks.rows
                coefficients, intercepts = landmark_svm(landmarks, data.X, data.codes, self.C)
                data.tell_done()
            else:
                points, coefficients, intercepts = self._fit_gram(data, gamma)
                words = f"{len(coefficients)} support vectors"
        title = f"RBF-SVM, gamma={gamma:.4g} ({origin}), C={self.C:.4g}, {words}, {data.bits.describe()}"
        return KernelExpansion(points, gamma, coefficients, intercepts, data.bits, title)

    def _fit_gram(self, data: Training, gamma: float) -> tuple[Rows, FloatArray, FloatArray]:
        """Support vectors, coefficients and intercepts."""
        if data.bits.n_distinct == 0:
            return data.X[:0], np.zeros((0, 0)), np.zeros(0)
        K = RBFPoints(data.X, gamma).gram()
        machines = fit_each(lambda y: _fit_one(K, y, self.C, self.tol), list(data.codes.T), data)
        columns, intercepts = zip(*machines, strict=True)
        coefficients = np.column_stack(columns)
        support = np.flatnonzero(coefficients.any(axis=1))
        return data.X[support], coefficients[support], np.array(intercepts)


def _fit_one(K: FloatArray, y: NDArray[np.int8], C: float, tol: float) -> tuple[FloatArray, float]:
    """Coefficients of all rows and the intercept, for one bit on the shared Gram matrix."""
    coefficients = np.zeros(len(y))
    svc = SVC(kernel="precomputed", C=C, tol=tol, cache_size=CACHE_MEGABYTES).fit(K, y)
    coefficients[svc.support_] = svc.dual_coef_.ravel()
    return coefficients, float(svc.intercept_[0])


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
