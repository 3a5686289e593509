"""Fitted kernel methods: margin of bit b at x = Σ_i coefficients[i, b] k(x, s_i) + intercepts[b], for all bits at once.

A panel of rows costs one product with the points, one exp in place, and one product with the coefficients.

`SharpenedExpansion` scores codewords instead: margins = softmax(b · scores) @ codewords − offset, with sharpness b.
Between two classes, each differing bit is decided separately and mostly by noise. A softmax lets the better class
decide all of them together. The softmax also mixes in the other codewords. The offset, the sum of the codewords divided
by (e^b + n_words − 1), removes that share: a sample with score 1 for one class and 0 for the others keeps the bits of
that class for every b. If scores sum to 1, signs tend to those without softmax as b → 0; as b grows, margins tend to
the best codeword.

`few_codewords` finds the distinct codewords among codes, O(n log n · n_bits). With labels there is one for each class.
Bits are indicators of codewords times codewords, so least squares gives the same result for bits and for indicators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax

from hashlearn.core.arrays import tensor_like
from hashlearn.core.checks import checked_csr, positive
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.fitted import PANEL_ROWS, FittedHashFunctions, PanelFunction, Rows, filled_up
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.stored import largest_entry, stored_array, stored_number

LARGEST = 1e6  # scores are about 0 to 1, so more changes nothing; float32 still represents the product
MOST_WORDS = 1000


class KernelExpansion(FittedHashFunctions):
    """Points, γ, a coefficient for each point and distinct bit, an intercept for each distinct bit."""

    kind = "kernel_expansion"
    stored: ClassVar[tuple[str, ...]] = ("gamma", "coefficients", "intercepts", "points")

    def __init__(
        self,
        points: Rows,
        gamma: float,
        coefficients: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        bits: DistinctBits,
        description: str,
    ) -> None:
        super().__init__(points.shape[1], bits, description)
        self.points = points
        self.gamma = float(gamma)
        self.coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
        self.intercepts = np.asarray(intercepts, dtype=np.float64)
        self._densify = not sp.issparse(points)

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        points = RBFPoints(self.points, self.gamma, dtype)
        coefficients, intercepts = self.coefficients.astype(dtype), self.intercepts.astype(dtype)
        if points.sparse:
            # The product with the coefficients needs panels of the fixed shape too.
            return lambda panel: filled_up(points.kernel(panel), PANEL_ROWS) @ coefficients + intercepts, [coefficients]
        return lambda panel: points.kernel(panel) @ coefficients + intercepts, [points.scaled.T, coefficients]

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        if sp.issparse(self.points):
            return super()._tensor_function(X)
        points = RBFPoints(self.points, self.gamma).beside(X)
        coefficients, intercepts = tensor_like(self.coefficients, X), tensor_like(self.intercepts, X)
        return lambda rows: points.kernel(rows) @ coefficients + intercepts, len(self.coefficients)

    def margin_bound(self, entry: float) -> float:
        """Σ|coefficients| + |intercept|; infinite if an exponent could be the difference of two infinities.

        ‖z‖² may overflow: the kernel of a point that far away is 0.
        """
        entries = largest_entry(self.points.data if sp.issparse(self.points) else self.points)
        factor = (2.0 * self.gamma) ** 0.5
        z, s = factor * (entry + entries), factor * 2.0 * entries
        if not self.n_features * (z * s + s * s) < np.inf:
            return np.inf
        return len(self.coefficients) * largest_entry(self.coefficients) + largest_entry(self.intercepts)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> KernelExpansion:
        bits = DistinctBits.from_state(state)
        coefficients = stored_array(state, "coefficients", (None, bits.n_distinct))
        intercepts = stored_array(state, "intercepts", (bits.n_distinct,))
        points = stored_points(state, len(coefficients))
        return cls(points, stored_number(state, "gamma"), coefficients, intercepts, bits, state["description"])


def stored_points(state: dict[str, Any], m: int) -> Rows:
    """The m points of a state, dense or CSR, checked."""
    shape = (m, int(state["n_features"]))
    if "points" in state:
        return stored_array(state, "points", shape)
    data = stored_array(state, "points_data", (None,))
    indices, indptr = (stored_array(state, f"points_{part}", (None,), "i") for part in ("indices", "indptr"))
    return checked_csr(data, indices, indptr, shape)


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


class Codewords:
    """``words[member[i]]`` is the code of row i. An index gives indicators of codewords, to fit in place of bits.

    >>> words = Codewords(np.array([[1, 1], [1, -1], [-1, 1]], dtype=np.int8), np.array([0, 2, 0]))
    >>> words[1:]
    array([[0, 0, 1],
           [1, 0, 0]], dtype=int8)
    """

    def __init__(self, words: NDArray[np.int8], member: NDArray[np.intp]) -> None:
        self.words, self.member = words, member
        self.shape = (len(member), len(words))

    def __getitem__(self, rows: Any) -> NDArray[np.int8]:
        return (self.member[rows][:, None] == np.arange(len(self.words))).astype(np.int8)


FittedTo: TypeAlias = NDArray[np.int8] | Codewords  # what least squares is given: codes ±1, or indicators


def few_codewords(codes: NDArray[np.int8]) -> Codewords | str:
    """The distinct rows of ``codes``, or the reason, in words, why they are too few or too many.

    >>> few_codewords(np.array([[1, -1], [1, 1], [1, -1], [1, 1]], dtype=np.int8)).member
    array([0, 1, 0, 1])
    >>> few_codewords(np.array([[1, -1], [1, 1]], dtype=np.int8))
    '2 of 2 codes are distinct, more than 1'
    """
    if codes.shape[1] == 0 or (codes == codes[0]).all():
        return "all codes are equal"
    packed = np.packbits(codes > 0, axis=1)
    _, first, member = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    most = min(MOST_WORDS, len(codes) // 2)
    if len(first) > most:
        return f"{len(first)} of {len(codes)} codes are distinct, more than {most}"
    return Codewords(codes[first], member.ravel())
