"""What kernel ridge regression and the RBF-SVM share: ``"cv"``, and landmarks for many rows.

``"cv"`` selects γ and the strength (C or alpha) by accuracy on held-out rows. At most 1,500 rows and 4 distinct bits
are drawn, and a third of the rows is held out. Every point of a small grid around the defaults is fitted on the rest:
γ times 1/64 … 64, the strength times 1/10, 1, 10. The best mean accuracy wins; among equals the one nearest the
defaults. A parameter that is a number or a rule is not changed. With fewer than 20 rows the defaults are used.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number
from hashlearn.core.memory import gram_rows_limit
from hashlearn.hash_functions.bandwidth import check_gamma, choose_gamma
from hashlearn.hash_functions.base import HashFunction, Training
from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.nystroem import NystroemFeatures

GAMMA_FACTORS = (1.0, 0.25, 4.0, 1 / 16, 16.0, 1 / 64, 64.0)
STRENGTH_FACTORS = (1.0, 10.0, 0.1)
MOST_ROWS = 1500
MOST_BITS = 4
FEWEST_ROWS = 20

# (Gram of training rows, their codes, kernel of held-out × training rows, strength) → margins of held-out rows
Trial: TypeAlias = Callable[[FloatArray, NDArray[np.int8], FloatArray, float], FloatArray]

log = logging.getLogger(__name__)


class KernelMethod(HashFunction):
    """A method with the kernel exp(−γ‖x − x'‖²)."""

    gamma: float | str
    max_gram_rows: int | None
    n_landmarks: int

    @abstractmethod
    def _trial(self, K: FloatArray, codes: NDArray[np.int8], K_held: FloatArray, strength: float) -> FloatArray:
        """Margins of held-out rows after a fit on K."""

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
        choice = select_on_held_out_rows(data.X, data.codes, gammas, strengths, self._trial, data.rng)
        if choice is None:
            return gamma, value, f"{origin}, too few rows for cv"
        words = f"{'cv' if self.gamma == 'cv' else origin}, {choice.accuracy:.3f} of held-out bits right"
        return choice.gamma, choice.strength, words

    def _landmarks(self, data: Training, gamma: float) -> tuple[NystroemFeatures, str] | None:
        """Nyström features and why they are used, in words; None if the Gram matrix is small enough."""
        n, limit = data.X.shape[0], gram_rows_limit(self.max_gram_rows)
        if n <= limit or data.bits.n_distinct == 0:
            return None
        features = NystroemFeatures(data.X, gamma, self.n_landmarks, data.rng)
        reason = f"{features.m} Nyström landmarks because {n} rows are more than {limit}"
        log.warning("%s: %s", self.name, reason)
        return features, reason


class Choice(NamedTuple):
    """What was selected, and its held-out accuracy."""

    gamma: float
    strength: float
    accuracy: float


def select_on_held_out_rows(
    X: Rows,
    codes: NDArray[np.int8],
    gammas: Sequence[float],
    strengths: Sequence[float],
    trial: Trial,
    rng: np.random.Generator,
) -> Choice | None:
    """The best pair; the defaults come first among the candidates. None if there are too few rows or no bits."""
    n = X.shape[0]
    if n < FEWEST_ROWS or codes.shape[1] == 0:
        return None
    rows = rng.permutation(n)[:MOST_ROWS]
    bits = np.sort(rng.permutation(codes.shape[1])[:MOST_BITS])
    held, train = np.split(rows, [len(rows) // 3])
    y, y_held = codes[np.ix_(train, bits)], codes[np.ix_(held, bits)]
    best: Choice | None = None
    for gamma in gammas:
        points = RBFPoints(X[train], gamma)
        K, K_held = points.gram(), points.kernel(X[held])
        for strength in strengths:
            margins = trial(K, y, K_held, strength)
            accuracy = float(np.mean((margins >= 0.0) == (y_held > 0)))
            if best is None or accuracy > best.accuracy:
                best = Choice(gamma, strength, accuracy)
    return best
