"""``"trees"``: boosted trees for each distinct bit, as in FastHash: 200 trees of depth 4. O(n · n_features) a tree.

A forest is complete trees as plain arrays. The margin of a bit is the sum of the leaves a row falls into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.checks import whole_number
from hashlearn.core.jobs import fit_each
from hashlearn.core.threads import on_this_thread
from hashlearn.hash_functions.base import HashFunction, Training
from hashlearn.hash_functions.boosting import Forest, bin_rows, boost
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction
from hashlearn.hash_functions.stored import require_range, stored_array

DEEPEST = 12  # a complete tree has 2 ** depth leaves


@dataclass(frozen=True)
class Trees(HashFunction):
    """The boosted trees of FastHash (see `hash_functions.boosting`), all samples of equal weight. Dense X only.

    Parameters
    ----------
    n_trees : of each distinct bit
    max_depth : of every tree, at most 12
    """

    n_trees: int = 200
    max_depth: int = 4

    name: ClassVar[str] = "trees"
    accepts_sparse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole_number(self.n_trees, "n_trees", least=1)
        whole_number(self.max_depth, "max_depth", least=1, most=DEEPEST)

    def _fit(self, data: Training) -> ForestMargins:
        X, bits = data.X, data.bits
        if sp.issparse(X):
            raise TypeError("trees need dense X, got a sparse matrix; pass X.toarray(), or use linear_svm or rbf_svm")
        rows, weights = bin_rows(X), np.ones(X.shape[0])

        def fit_one(job: tuple[NDArray[np.int8], np.random.Generator]) -> Forest:
            with on_this_thread():  # several bits are fitted at a time
                return boost(rows, job[0], weights, self.n_trees, self.max_depth, job[1])[0]

        jobs = list(zip(data.codes.T, data.rng.spawn(bits.n_distinct), strict=True))
        forests = fit_each(fit_one, jobs, data.n_jobs, data.progress)
        title = f"boosted trees, {self.n_trees} of depth {self.max_depth}"
        return ForestMargins(forests, X.shape[1], bits, f"{title}, {bits.describe()}")


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
