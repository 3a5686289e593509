"""``"kernel_ridge"``: least squares on the codes ±1 with the RBF kernel, all bits in one Cholesky solve.

O(n² n_features + n³/3); past `max_gram_rows` Nyström landmarks take over, linear in n.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.memory import gram_rows_limit
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.bandwidth import check_gamma, choose_gamma
from hashlearn.hash_functions.base import STAGE, training_pair
from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.codewords import Codewords, FittedTo, few_codewords
from hashlearn.hash_functions.distinct_bits import distinct_bits
from hashlearn.hash_functions.expansion import KernelExpansion
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.leave_one_out import alpha_by_leave_one_out
from hashlearn.hash_functions.nystroem import NystroemFeatures, nystroem_ridge
from hashlearn.hash_functions.selection import (
    GAMMA_FACTORS,
    STRENGTH_FACTORS,
    candidates,
    select_on_held_out_rows,
)
from hashlearn.hash_functions.sharpened import SharpenedExpansion, check_sharpen

DEFAULT_ALPHA = 0.1

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KernelRidge:
    """Minimise Σ (y − f(x))² + alpha ‖f‖² with the kernel exp(−γ‖x − x'‖²): coefficients (K + alpha I)⁻¹ y.

    Parameters
    ----------
    alpha : weight of ‖f‖²; "loo": the best of five by leave-one-out errors (see `leave_one_out`); or "cv"
    gamma : "neighbors", "median", "scale" (see `bandwidth`), a positive number, or "cv"; "cv" selects on held-out
        rows from a grid around the default (see `selection`)
    max_gram_rows : with more rows than this, Nyström landmarks instead of the Gram matrix; None: 20,000, or fewer
        where a quarter of the machine's memory holds no such matrix
    n_landmarks : rows drawn as landmarks then
    sharpen : None, or a number b: where few codes are distinct (with labels: one for each class) codewords are scored,
        and margins are softmax(b · scores) @ codewords less an offset (see `sharpened`), else as without. 2 to 8 make
        for higher precision within a small radius, most with few bits, at some cost of mean average precision
        (docs/quality.md). Not with "cv"
    """

    alpha: float | str = "loo"
    gamma: float | str = "neighbors"
    max_gram_rows: int | None = None
    n_landmarks: int = 3000
    sharpen: float | None = None

    name: ClassVar[str] = "kernel_ridge"
    accepts_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.alpha, str) and self.alpha not in ("loo", "cv"):
            raise ValueError(f"alpha must be a positive number, 'loo' or 'cv', got {self.alpha!r}")
        if not isinstance(self.alpha, str):
            positive(self.alpha, "alpha")
        check_gamma(self.gamma)
        if self.max_gram_rows is not None:
            whole_number(self.max_gram_rows, "max_gram_rows", least=1)
        whole_number(self.n_landmarks, "n_landmarks", least=1)
        if self.sharpen is not None:
            check_sharpen(self.sharpen)
            if "cv" in (self.alpha, self.gamma):
                raise ValueError("sharpen does not go with 'cv', which judges bits; there is alpha='loo'")

    def fit(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> KernelExpansion:
        """Learn all bits; see `HashFunction.fit`. There is one solve, so ``n_jobs`` changes nothing."""
        X, codes = training_pair(X, codes)
        bits = distinct_bits(codes)
        codes = codes[:, bits.columns]
        words = few_codewords(codes) if self.sharpen is not None else ""
        y = words.indicators if isinstance(words, Codewords) else codes
        limit = gram_rows_limit(self.max_gram_rows)
        with one_blas_thread():
            gamma, alpha, origin = self._choose(X, codes, y, rng)
            title = f"kernel ridge, gamma={gamma:.4g} ({origin}), alpha={alpha:.4g}"
            if X.shape[0] > limit and bits.n_distinct:
                features = NystroemFeatures(X, gamma, self.n_landmarks, rng)
                reason = f"{features.m} Nyström landmarks because {X.shape[0]} rows are more than {limit}"
                log.warning("%s: %s", self.name, reason)
                points, coefficients = features.landmarks, nystroem_ridge(features, y, alpha)
                title = f"{title}, {reason}"
            else:
                points = X if bits.n_distinct else X[:0]
                K = RBFPoints(X, gamma).gram() if bits.n_distinct else np.empty((0, 0))
                coefficients = _solve(K, y[: len(K)], alpha)
        tell(progress, STAGE, bits.n_distinct, bits.n_distinct)
        if isinstance(words, Codewords) and self.sharpen is not None:
            title = f"{title}, scores of {len(words.words)} codewords sharpened by {self.sharpen:g}, {bits.describe()}"
            return SharpenedExpansion(points, gamma, coefficients, words.words, self.sharpen, bits, title)
        if words:
            log.warning("%s: not sharpened because %s", self.name, words)
            title = f"{title}, not sharpened because {words}"
        intercepts = np.zeros(bits.n_distinct)
        return KernelExpansion(points, gamma, coefficients, intercepts, bits, f"{title}, {bits.describe()}")

    def _choose(
        self, X: Rows, codes: NDArray[np.int8], y: FittedTo, rng: np.random.Generator
    ) -> tuple[float, float, str]:
        """γ, α and where γ is from; ``y``: what is fitted, the codes unless they are sharpened."""
        gamma, origin = choose_gamma(self.gamma, X, rng)
        alpha = DEFAULT_ALPHA if isinstance(self.alpha, str) else float(self.alpha)
        if "cv" not in (self.gamma, self.alpha):
            return gamma, self._left_out(X, y, gamma, rng) or alpha, origin
        gammas = candidates(gamma, self.gamma == "cv", GAMMA_FACTORS)
        alphas = candidates(alpha, self.alpha == "cv", STRENGTH_FACTORS)
        choice = select_on_held_out_rows(X, codes, gammas, alphas, _trial, rng)
        if choice is None:
            return gamma, alpha, f"{origin}, too few rows for cv"
        words = f"{'cv' if self.gamma == 'cv' else origin}, {choice.accuracy:.3f} of held-out bits right"
        return choice.gamma, self._left_out(X, y, choice.gamma, rng) or choice.strength, words

    def _left_out(self, X: Rows, y: FittedTo, gamma: float, rng: np.random.Generator) -> float | None:
        return alpha_by_leave_one_out(X, y, gamma, rng) if self.alpha == "loo" else None


def _solve(K: NDArray[np.float64], codes: NDArray[np.int8], alpha: float) -> NDArray[np.float64]:
    """(K + alpha I)⁻¹ codes; K is overwritten."""
    K[np.diag_indices_from(K)] += alpha
    return cho_solve(cho_factor(K, lower=True, overwrite_a=True, check_finite=False), codes.astype(np.float64))


def _trial(
    K: NDArray[np.float64], codes: NDArray[np.int8], K_held: NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    return K_held @ _solve(K.copy(), codes, alpha)
