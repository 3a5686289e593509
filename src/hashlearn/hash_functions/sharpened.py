"""Kernel functions that score codewords: margins = softmax(b · scores) @ codewords − offset, with sharpness b.

Between two classes, each differing bit is decided separately and mostly by noise. A softmax lets the better class
decide all of them together. The softmax also mixes in the other codewords. The offset, the sum of the codewords divided
by (e^b + n_words − 1), removes that share: a sample with score 1 for one class and 0 for the others keeps the bits of
that class for every b. If scores sum to 1, signs tend to those without softmax as b → 0; as b grows, margins tend to
the best codeword.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from hashlearn.core.arrays import tensor_like
from hashlearn.core.checks import positive
from hashlearn.hash_functions.base import FittedHashFunctions
from hashlearn.hash_functions.batch_invariant import PanelFunction, Rows
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.expansion import KernelExpansion, stored_points
from hashlearn.hash_functions.stored import stored_array, stored_number

LARGEST = 1e6  # scores are about 0 to 1, so more changes nothing; float32 still represents the product


class SharpenedExpansion(KernelExpansion):
    """Points, γ, a coefficient for each point and codeword, the codewords in distinct bits, and the sharpness."""

    kind = "sharpened_expansion"
    stored = ("gamma", "coefficients", "points", "words", "sharpen")  # scores have no intercepts

    def __init__(
        self,
        points: Rows,
        gamma: float,
        coefficients: NDArray[np.float64],
        words: NDArray[np.int8],
        sharpen: float,
        bits: DistinctBits,
        description: str,
    ) -> None:
        super().__init__(points, gamma, coefficients, np.zeros(len(words)), bits, description)
        self.words = np.ascontiguousarray(words, dtype=np.int8)
        self.sharpen = float(sharpen)

    @property
    def levels(self) -> NDArray[np.float64]:
        """Codewords minus the offset; rows of a softmax sum to 1, so margins are softmax @ levels."""
        faint = np.exp(-self.sharpen)
        return self.words - self.words.sum(axis=0) * (faint / (1.0 + (len(self.words) - 1) * faint))

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        scores, factors = super()._panel_function(dtype, sparse)
        levels = self.levels.astype(dtype)
        return lambda panel: sharpened(scores(panel), self.sharpen) @ levels, [*factors, levels]

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        if sp.issparse(self.points):
            return FittedHashFunctions._tensor_function(self, X)
        scores, width = super()._tensor_function(X)
        levels = tensor_like(self.levels, X)

        def margins(rows: Any) -> Any:
            found = scores(rows)
            return (self.sharpen * (found - found.amax(dim=1, keepdim=True))).softmax(dim=1) @ levels

        return margins, width

    def margin_bound(self, entry: float) -> float:
        """The bound of the scores; levels are at most 2 in size."""
        return max(2.0, super().margin_bound(entry))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> SharpenedExpansion:
        bits = DistinctBits.from_state(state)
        words = stored_array(state, "words", (None, bits.n_distinct), "i")
        if words.size == 0 or not (np.abs(words.astype(np.int64)) == 1).all():
            raise ValueError("words must be codewords of -1 and +1")
        coefficients = stored_array(state, "coefficients", (None, len(words)))
        sharpen = stored_number(state, "sharpen", least=0.0)
        check_sharpen(sharpen)
        points, gamma = stored_points(state, len(coefficients)), stored_number(state, "gamma")
        return cls(points, gamma, coefficients, words, sharpen, bits, state["description"])


def check_sharpen(value: Any) -> None:
    """Refuse a value that is not a positive number up to `LARGEST`."""
    positive(value, "sharpen")
    if value > LARGEST:
        raise ValueError(f"sharpen must be at most {LARGEST:g}, got {value!r}")


def sharpened(scores: NDArray[Any], sharpen: float) -> NDArray[Any]:
    """softmax(sharpen · scores) of every row; the largest score is subtracted first.

    >>> sharpened(np.array([[0.0, 0.0], [0.0, 1.0]]), 1e6)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    return softmax(sharpen * (scores - scores.max(axis=1, keepdims=True)), axis=1)
