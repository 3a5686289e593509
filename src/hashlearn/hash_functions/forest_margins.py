"""Fitted forests of complete trees as plain arrays: the margin of a bit is the sum of the leaves a row falls into."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.hash_functions.base import FittedHashFunctions
from hashlearn.hash_functions.batch_invariant import PanelFunction
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.stored import largest_entry, require_range, stored_array


class Forest(NamedTuple):
    """Complete trees: node k has children 2k + 1 (x ≤ threshold) and 2k + 2, the leaves come after all nodes."""

    features: NDArray[np.int32]  # (n_trees, 2 ** depth − 1)
    thresholds: NDArray[np.float64]
    leaves: NDArray[np.float64]  # (n_trees, 2 ** depth)


class ForestMargins(FittedHashFunctions):
    """A forest for each distinct bit; the margin is the sum of its leaves. A threshold of +inf sends every row left."""

    kind = "forests"
    _panel_rows = 1024
    _fill_up = False

    def __init__(self, forests: list[Forest], n_features: int, bits: DistinctBits, description: str) -> None:
        super().__init__(n_features, bits, description)
        self.forests = forests

    def margin_bound(self, entry: float) -> float:
        """The sum of the largest leaves."""
        return max((len(forest.leaves) * largest_entry(forest.leaves) for forest in self.forests), default=0.0)

    def state(self) -> dict[str, Any]:
        """Arrays."""
        return {**self._base_state(), **_stacked(self.forests)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ForestMargins:
        """The inverse of ``state``."""
        bits, n_features = DistinctBits.from_state(state), int(state["n_features"])
        forests = []
        if bits.n_distinct:
            leaves = stored_array(state, "forest_leaves", (bits.n_distinct, None, None))
            nodes = (*leaves.shape[:2], leaves.shape[2] - 1)
            if leaves.shape[2] & nodes[2] or nodes[2] < 0:
                raise ValueError(f"forest_leaves must have a power of two of leaves a tree, got shape {leaves.shape}")
            features = stored_array(state, "forest_features", nodes, "i")
            require_range(features, "forest_features", 0, n_features - 1)
            thresholds = stored_array(state, "forest_thresholds", nodes, may_be_infinite=True)
            arrays = (features.astype(np.int32), thresholds.astype(np.float64), leaves.astype(np.float64))
            forests = [Forest(*parts) for parts in zip(*arrays, strict=True)]
        return cls(forests, n_features, bits, state["description"])

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        features, thresholds, leaves = _stacked(self.forests).values()
        depth = int(np.log2(leaves.shape[2]))

        def margins(panel: NDArray[Any]) -> NDArray[Any]:
            out = np.empty((len(panel), len(features)))
            _evaluate(np.ascontiguousarray(panel), features, thresholds, leaves, depth, out)
            return out.astype(dtype)

        return margins, []


def _stacked(forests: list[Forest]) -> dict[str, NDArray[Any]]:
    """The arrays of all forests, one row for each."""
    return {f"forest_{field}": np.array([getattr(forest, field) for forest in forests]) for field in Forest._fields}


@njit(cache=True, nogil=True)
def _evaluate(X, features, thresholds, leaves, depth, out):  # type: ignore[no-untyped-def]
    n_bits, n_trees, n_nodes = features.shape
    for i in range(len(X)):
        for b in range(n_bits):
            total = 0.0
            for t in range(n_trees):
                k = 0
                for _ in range(depth):
                    k = 2 * k + 1 + (X[i, features[b, t, k]] > thresholds[b, t, k])
                total += leaves[b, t, k - n_nodes]
            out[i, b] = total
