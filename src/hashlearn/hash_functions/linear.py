"""Fitted linear methods: margins X @ weights + intercepts, for all bits at once. Sparse X stays sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import tensor_like
from hashlearn.hash_functions.base import FittedHashFunctions
from hashlearn.hash_functions.batch_invariant import PanelFunction, Rows
from hashlearn.hash_functions.distinct_bits import DistinctBits, every_bit
from hashlearn.hash_functions.stored import largest_entry, stored_array

UNDERFLOW = 1e-140  # squares of smaller entries lose digits


class LinearMargins(FittedHashFunctions):
    """A weight for each feature and distinct bit, an intercept for each distinct bit."""

    kind = "linear"
    stored = ("weights", "intercepts")
    _densify = False

    def __init__(
        self, weights: NDArray[np.float64], intercepts: NDArray[np.float64], bits: DistinctBits, description: str
    ) -> None:
        super().__init__(weights.shape[0], bits, description)
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.intercepts = np.asarray(intercepts, dtype=np.float64)

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        weights, intercepts = self.weights.astype(dtype), self.intercepts.astype(dtype)
        return lambda panel: panel @ weights + intercepts, [] if sparse else [weights]

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        weights, intercepts = tensor_like(self.weights, X), tensor_like(self.intercepts, X)
        return lambda rows: rows @ weights + intercepts, self.bits.n_distinct

    def margin_bound(self, entry: float) -> float:
        return self.n_features * entry * largest_entry(self.weights) + largest_entry(self.intercepts)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LinearMargins:
        bits = DistinctBits.from_state(state)
        weights = stored_array(state, "weights", (int(state["n_features"]), bits.n_distinct))
        return cls(weights, stored_array(state, "intercepts", (bits.n_distinct,)), bits, state["description"])


def linear_functions(weights: NDArray[Any], origin: NDArray[Any], description: str) -> LinearMargins:
    """Margins (x − origin) @ weights, one column of ``weights`` for each bit."""
    return LinearMargins(weights, -(origin @ weights), every_bit(weights.shape[1]), description)


def usable_scale(scale: float, dtype: np.dtype[Any]) -> float:
    """``scale``, or 0 if it is so small that a number divided by it can overflow: X is then practically constant."""
    return scale if scale > 1e8 * float(np.finfo(dtype).tiny) else 0.0


def typical_norm(X: Rows) -> float:
    """The root of the mean squared row norm; 1 if X is zero. Dividing by it makes C mean the same for any units."""
    entries = X.data if sp.issparse(X) else X
    norm = float(np.sqrt(np.square(entries, dtype=np.float64).sum() / X.shape[0]))
    if UNDERFLOW < norm < np.inf:
        return norm
    largest = float(max(entries.max(), -entries.min())) if entries.size else 0.0
    if not 0.0 < largest < np.inf:
        return 1.0
    norm = largest * float(np.sqrt(np.square(np.divide(entries, largest, dtype=np.float64)).sum() / X.shape[0]))
    return max(norm, 1e8 * float(np.finfo(X.dtype).tiny))  # weights are divided by it, and must stay finite
