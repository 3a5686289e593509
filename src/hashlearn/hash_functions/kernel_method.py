"""What kernel ridge regression and the RBF-SVM share: ``"cv"``, and Nyström landmarks for many rows.

``"cv"`` selects γ and the strength (C or alpha) by accuracy on held-out rows. At most 1,500 rows and 4 distinct bits
are drawn, and a third of the rows is held out. Every point of a small grid around the defaults is fitted on the rest:
γ times 1/64 … 64, the strength times 1/10, 1, 10. The best mean accuracy wins; among equals the one nearest the
defaults. A parameter that is a number or a rule is not changed. With fewer than 20 rows the defaults are used.

Landmarks avoid the n × n Gram matrix: functions are combinations of m landmark kernels (Nyström). Φ = K_nm L⁻ᵀ with
LLᵀ = K_mm turns the kernel problem into a linear one with m features. Φ is computed block by block of rows. It is
rounded to float32 and cached if it fits into a quarter of the memory, else computed again in every pass, to the same
numbers.
O(n m (n_features + m)) once, then O(n m n_bits) for each pass.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
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
from hashlearn.hash_functions.kernels import RBFPoints, check_gamma, choose_gamma

GAMMA_FACTORS = (1.0, 0.25, 4.0, 1 / 16, 16.0, 1 / 64, 64.0)
STRENGTH_FACTORS = (1.0, 10.0, 0.1)
MOST_ROWS = 1500
MOST_BITS = 4
FEWEST_ROWS = 20

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

    @abstractmethod
    def _trial(self, K: FloatArray, codes: NDArray[np.int8], K_held: FloatArray, strength: float) -> FloatArray:
        """Margins of held-out rows, from their kernel with the training rows, after a fit on the Gram matrix K."""

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

    def _choose(self, data: Training, strength: float | str, default: float) -> tuple[float, float, str]:
        """γ, the strength, and the source of γ in words."""
        gamma, origin = choose_gamma(self.gamma, data.X, data.rng)
        value = default if isinstance(strength, str) else float(strength)
        if "cv" not in (self.gamma, strength):
            return gamma, value, origin
        gammas = [gamma * factor for factor in (GAMMA_FACTORS if self.gamma == "cv" else (1.0,))]
        strengths = [value * factor for factor in (STRENGTH_FACTORS if strength == "cv" else (1.0,))]
        if data.X.shape[0] < FEWEST_ROWS or data.bits.n_distinct == 0:
            return gamma, value, f"{origin}, too few rows for cv"
        accuracy, gamma, value = self._select(data, gammas, strengths)
        return gamma, value, f"{'cv' if self.gamma == 'cv' else origin}, {accuracy:.3f} of held-out bits right"

    def _select(
        self, data: Training, gammas: Sequence[float], strengths: Sequence[float]
    ) -> tuple[float, float, float]:
        """The best accuracy on held-out rows, its γ and its strength; the defaults come first among the candidates."""
        X, codes, rng = data.X, data.codes, data.rng
        rows = rng.permutation(X.shape[0])[:MOST_ROWS]
        bits = np.sort(rng.permutation(codes.shape[1])[:MOST_BITS])
        held, train = np.split(rows, [len(rows) // 3])
        y, y_held = codes[np.ix_(train, bits)], codes[np.ix_(held, bits)]
        tried = []
        for gamma in gammas:
            points = RBFPoints(X[train], gamma)
            K, K_held = points.gram(), points.kernel(X[held])
            for strength in strengths:
                margins = self._trial(K, y, K_held, strength)
                tried.append((float(np.mean((margins >= 0.0) == (y_held > 0))), gamma, strength))
        return max(tried, key=lambda candidate: candidate[0])

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
    """Coefficients and intercepts that minimize ½‖f‖² + C Σ max(0, 1 − y f)², all bits together.

    The squared hinge is bounded by a square with the Hessian of ridge regression, the same for all bits: one
    Cholesky factor, then accelerated passes whose first is the ridge solution itself.
    """
    m, weight = features.m, 0.5 / C
    penalties = np.full(m + 1, weight)
    penalties[m] *= FREE_INTERCEPT
    H = cho_factor(features.gram + np.diag(penalties), lower=True, overwrite_a=True)
    W = ahead = np.zeros((m + 1, codes.shape[1]))
    momentum = 1.0
    for _ in range(PASSES):
        descent = features.sum_blocks(partial(_hinge_descent, features, codes, ahead))
        previous, W = W, ahead + cho_solve(H, descent - penalties[:, None] * ahead)
        change = np.linalg.norm(W - previous)
        if change <= SETTLED * np.linalg.norm(W):
            break
        last_momentum, momentum = momentum, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead = W + ((last_momentum - 1.0) / momentum) * (W - previous)
    return features.coefficients(W[:m]), W[m]


def _hinge_descent(
    features: NystroemFeatures, codes: NDArray[np.int8], W: FloatArray, first: int, last: int
) -> FloatArray:
    """Half the negative gradient of the loss over a block of rows, for the features and the intercept."""
    rows = features.rows(first, last)
    y = codes[first:last].astype(rows.dtype)
    f = rows @ W[:-1].astype(rows.dtype) + W[-1].astype(rows.dtype)
    descent = y * np.maximum(1.0 - y * f, 0.0)
    return np.vstack([rows.T @ descent, descent.sum(axis=0)]).astype(np.float64)
