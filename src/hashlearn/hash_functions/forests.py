"""Fitted forests of complete trees as plain arrays: the margin of a bit is the sum of the leaves a row falls into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.hash_functions.base import FittedHashFunctions
from hashlearn.hash_functions.batch_invariant import PanelFunction
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.stored import largest_entry, require_range, stored_array

DEEPEST = 12  # largest depth for `as_forests`; a complete tree has 2 ** depth leaves


class Forest(NamedTuple):
    """Complete trees: node k has children 2k + 1 (x ≤ threshold) and 2k + 2; the leaves come after all nodes."""

    features: NDArray[np.int32]  # (n_trees, 2 ** depth − 1)
    thresholds: NDArray[np.float64]
    leaves: NDArray[np.float64]  # (n_trees, 2 ** depth)


class ForestMargins(FittedHashFunctions):
    """A forest for each distinct bit; the margin is the sum of its leaves. A threshold of +inf sends every row left."""

    kind = "forests"
    stored = ("forest_features", "forest_thresholds", "forest_leaves")
    _panel_rows = 1024
    _fill_up = False

    def __init__(self, forests: Sequence[Forest], n_features: int, bits: DistinctBits, description: str) -> None:
        super().__init__(n_features, bits, description)
        self.forest_features, self.forest_thresholds, self.forest_leaves = (
            np.array([getattr(forest, field) for forest in forests]) for field in Forest._fields
        )

    @property
    def forests(self) -> list[Forest]:
        """One forest for each distinct bit."""
        parts = zip(self.forest_features, self.forest_thresholds, self.forest_leaves, strict=True)
        return [Forest(*arrays) for arrays in parts]

    def margin_bound(self, entry: float) -> float:
        return max((len(forest.leaves) * largest_entry(forest.leaves) for forest in self.forests), default=0.0)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ForestMargins:
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
        arrays = (self.forest_features, self.forest_thresholds, self.forest_leaves)
        depth = int(np.log2(self.forest_leaves.shape[2]))

        def margins(panel: NDArray[Any]) -> NDArray[Any]:
            out = np.empty((len(panel), self.bits.n_distinct))
            _evaluate(np.ascontiguousarray(panel), *arrays, depth, out)
            return out.astype(dtype)

        return margins, []


def as_forests(boosters: Sequence[Any]) -> list[Forest]:
    """One forest for each fitted `HistGradientBoostingClassifier` of two classes, all of the same shape.

    A complete tree continues below a booster's leaves with thresholds of +inf. The booster's constant is the first
    tree, so that leaves are added in the booster's order and the sums agree to the last digit.
    """
    grown = [[trees[0].nodes for trees in booster._predictors] for booster in boosters]
    depth = max((int(nodes["depth"].max()) for trees in grown for nodes in trees), default=0)
    if depth > DEEPEST:
        raise TypeError(
            f"boosted trees of depth {depth} are too deep to be stored without pickle; max_depth of at most {DEEPEST} "
            "can be"
        )
    return [
        _forest(trees, float(booster._baseline_prediction.ravel()[0]), depth)
        for booster, trees in zip(boosters, grown, strict=True)
    ]


def _forest(trees: list[NDArray[Any]], constant: float, depth: int) -> Forest:
    n_nodes = 2**depth - 1
    features = np.zeros((1 + len(trees), n_nodes), dtype=np.int32)
    thresholds = np.full((1 + len(trees), n_nodes), np.inf)
    leaves = np.zeros((1 + len(trees), n_nodes + 1))
    leaves[0] = constant
    for t, nodes in enumerate(trees, start=1):
        waiting = [(0, 0)]
        while waiting:
            node, place = waiting.pop()
            if place >= n_nodes:
                leaves[t, place - n_nodes] = nodes["value"][node]
            elif nodes["is_leaf"][node]:
                waiting.append((node, 2 * place + 1))
            else:
                features[t, place], thresholds[t, place] = nodes["feature_idx"][node], nodes["num_threshold"][node]
                waiting += [(nodes["left"][node], 2 * place + 1), (nodes["right"][node], 2 * place + 2)]
    return Forest(features, thresholds, leaves)


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
