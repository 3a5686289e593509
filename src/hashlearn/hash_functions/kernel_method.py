"""What kernel ridge regression and the RBF-SVM share: Nyström landmarks for many rows.

Landmarks avoid the n × n Gram matrix: functions are combinations of m landmark kernels (Nyström). Φ = K_nm L⁻ᵀ with
LLᵀ = K_mm turns the kernel problem into a linear one with m features. Φ is computed block by block of rows. It is
rounded to float32 and cached if it fits into a quarter of the memory, else computed again in every pass, to the same
numbers.
O(n m (n_features + m)) once, then O(n m n_bits) for each pass.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from math import isqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number
from hashlearn.core.memory import FLOAT64_BYTES, memory_share
from hashlearn.core.threads import ROWS_PER_BLOCK, on_this_thread, sum_row_blocks
from hashlearn.core.thresholds import LARGEST_GRAM_ROWS
from hashlearn.hash_functions.base import HashFunction, Training
from hashlearn.hash_functions.fitted import Rows
from hashlearn.hash_functions.kernels import RBFPoints, check_gamma
from hashlearn.hash_functions.squared_hinge import SquaredHinge

log = logging.getLogger(__name__)
JITTER = 1e-6  # on the diagonal of K_mm, whose entries are 1: landmarks may be equal
FREE_INTERCEPT = 1e-6  # weight of the intercept's square relative to a coefficient's
PASSES = 15  # the first is ridge regression: 96.3 % of an exact SVM's MNIST bits with 300 landmarks, ten: 97.0 %
SETTLED = 1e-3  # relative change of the weights that ends the passes
FLOAT32_BYTES = 4
WORK = 6 * 8  # bytes for each entry of a block: three float64 copies, in two threads
MEMORY_FOR_GRAM = 2  # quarters of the memory that a Gram matrix may take


class KernelMethod(HashFunction):
    """A method with the kernel exp(−γ‖x − x'‖²)."""

    gamma: float | str
    max_gram_rows: int | None
    n_landmarks: int

    def require_rows(self, X: Rows) -> None:
        """Refuse a Gram matrix that takes more than half of this machine's memory."""
        super().require_rows(X)
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

    def _landmarks(self, data: Training, gamma: float) -> tuple[NystroemFeatures, str] | None:
        """Nyström features and why they are used, in words; None if the Gram matrix is small enough."""
        n, limit = data.X.shape[0], self._most_gram_rows()
        if n <= limit or data.bits.n_distinct == 0:
            return None
        features = NystroemFeatures(data.X, gamma, self.n_landmarks, data.rng)
        reason = f"{features.m} Nyström landmarks because {n} rows are more than {limit}"
        log.info("%s: %s", self.name, reason)
        return features, reason


class Landmarks:
    """Landmark rows, and the map from any rows to their features Φ."""

    def __init__(self, landmarks: Rows, gamma: float) -> None:
        self.landmarks = landmarks
        self.points = RBFPoints(landmarks, gamma)
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

    def ridge(self, gram: FloatArray, moments: FloatArray, alpha: float) -> FloatArray:
        """Coefficients that minimize Σ (y − f)² + alpha ‖f‖² from ΦᵀΦ and Φᵀy, all bits in one Cholesky solve."""
        H = gram + alpha * np.eye(self.m)
        return self.coefficients(cho_solve(cho_factor(H, lower=True, overwrite_a=True), moments))


class NystroemFeatures(Landmarks):
    """Φ of all rows, and the landmarks behind it."""

    def __init__(self, X: Rows, gamma: float, n_landmarks: int, rng: np.random.Generator) -> None:
        n = X.shape[0]
        self.X, self.n = X, n
        super().__init__(X[np.sort(rng.choice(n, min(n_landmarks, n), replace=False))], gamma)
        fits = FLOAT32_BYTES * n * self.m <= memory_share()
        self.cached = np.empty((n, self.m), dtype=np.float32) if fits else None
        self.gram = self.sum_blocks(self._cache_and_square)

    def sum_blocks(self, function: Callable[[int, int], FloatArray]) -> FloatArray:
        """The sum of ``function(first, last)`` over all rows: blocks on all cores, or one by one if memory is short."""
        with nullcontext() if WORK * ROWS_PER_BLOCK * self.m <= memory_share() else on_this_thread():
            return sum_row_blocks(function, self.n)

    def rows(self, first: int, last: int) -> NDArray[np.float32]:
        """Rows first … last − 1 of Φ."""
        if self.cached is not None:
            return self.cached[first:last]
        return self.features(self.X[first:last]).astype(np.float32)

    def _cache_and_square(self, first: int, last: int) -> FloatArray:
        """ΦᵀΦ of a block, with a column of ones beside Φ for the intercept."""
        block = self.features(self.X[first:last])
        if self.cached is not None:
            self.cached[first:last] = block
        block = np.hstack([block, np.ones((last - first, 1))])
        return block.T @ block


def nystroem_ridge(features: NystroemFeatures, codes: NDArray[np.int8], alpha: float) -> FloatArray:
    """Coefficients that minimize Σ (y − f)² + alpha ‖f‖², all bits in one Cholesky solve, no intercept."""
    m = features.m
    moments = features.sum_blocks(lambda a, b: features.rows(a, b).T.astype(np.float64) @ codes[a:b])
    return features.ridge(features.gram[:m, :m], moments, alpha)


def nystroem_svm(features: NystroemFeatures, codes: NDArray[np.int8], C: float) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercepts that minimize ½‖f‖² + C Σ max(0, 1 − y f)², all bits together."""
    m = features.m
    penalties = np.full(m + 1, 0.5 / C)
    penalties[m] *= FREE_INTERCEPT
    svm = SquaredHinge(features.rows, features.gram, penalties, features.sum_blocks)
    W = svm.fit(codes, np.zeros((m + 1, codes.shape[1])), PASSES, SETTLED)
    return features.coefficients(W[:m]), W[m]
