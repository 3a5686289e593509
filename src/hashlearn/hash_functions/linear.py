"""Fitted linear methods: margins X @ weights + intercepts, for all bits at once. Sparse X stays sparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import tensor_like
from hashlearn.core.jobs import fit_each
from hashlearn.core.progress import ProgressCallback
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.base import FittedHashFunctions
from hashlearn.hash_functions.batch_invariant import PanelFunction, Rows
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.stored import largest_entry, stored_array

UNDERFLOW = 1e-140  # squares of entries below are no longer exact


class LinearMargins(FittedHashFunctions):
    """A weight for each feature and distinct bit, an intercept for each distinct bit."""

    kind = "linear"
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
        """Σ|weights| · entry + |intercept|."""
        return self.n_features * entry * largest_entry(self.weights) + largest_entry(self.intercepts)

    def state(self) -> dict[str, Any]:
        """Arrays."""
        return {**self._base_state(), "weights": self.weights, "intercepts": self.intercepts}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LinearMargins:
        """The inverse of ``state``."""
        bits = DistinctBits.from_state(state)
        weights = stored_array(state, "weights", (int(state["n_features"]), bits.n_distinct))
        return cls(weights, stored_array(state, "intercepts", (bits.n_distinct,)), bits, state["description"])


class LinearFit(NamedTuple):
    """One bit's weights and intercept."""

    weights: NDArray[Any]
    intercept: float


def fit_linear(
    fit_one: Callable[[tuple[Rows, NDArray[np.int8]]], LinearFit],
    X: Rows,
    codes: NDArray[np.int8],
    bits: DistinctBits,
    title: str,
    n_jobs: int | None,
    progress: ProgressCallback | None,
) -> LinearMargins:
    """``fit_one`` of (X / typical row norm, bit) for every distinct bit; weights come back in the units of X."""
    scale = typical_norm(X)
    scaled = X / X.dtype.type(scale)
    jobs: Sequence[tuple[Rows, NDArray[np.int8]]] = [(scaled, y) for y in codes[:, bits.columns].T]
    with one_blas_thread():
        fits = fit_each(fit_one, jobs, n_jobs, progress)
    weights = np.array([fit.weights for fit in fits], dtype=np.float64).reshape(len(fits), X.shape[1]).T / scale
    return LinearMargins(weights, np.array([f.intercept for f in fits]), bits, f"{title}, {bits.describe()}")


def typical_norm(X: Rows) -> float:
    """√ of the mean squared row norm, 1 where X is zero: the one factor that makes C mean the same for every unit."""
    entries = X.data if sp.issparse(X) else X
    norm = float(np.sqrt(np.square(entries, dtype=np.float64).sum() / X.shape[0]))
    if UNDERFLOW < norm < np.inf:
        return norm
    largest = float(max(entries.max(), -entries.min())) if entries.size else 0.0
    if not 0.0 < largest < np.inf:
        return 1.0
    norm = largest * float(np.sqrt(np.square(np.divide(entries, largest, dtype=np.float64)).sum() / X.shape[0]))
    return max(norm, 1e8 * float(np.finfo(X.dtype).tiny))  # weights are divided by it, and must stay finite
