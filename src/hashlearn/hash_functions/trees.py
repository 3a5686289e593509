"""``"trees"``: boosted trees for each distinct bit, as in FastHash: 200 trees of depth 4. O(n · n_features) a tree.

Fitted trees become forests of complete trees as plain arrays. The margin of a bit is the sum of the leaves a row falls
into.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import ThreadpoolController

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.jobs import fit_each
from hashlearn.hash_functions.base import HashFunction, Training
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction
from hashlearn.hash_functions.stored import require_range, stored_array

SMALL_SAMPLE = 10  # min_samples_leaf is at most the number of rows divided by this
DEEPEST = 12  # a complete tree has 2 ** depth leaves


@dataclass(frozen=True)
class Trees(HashFunction):
    """scikit-learn's histogram gradient boosting on the logistic loss; the margin is the log odds. Dense X only.

    Deviations from FastHash: logistic instead of hinge loss, and features divided into 255 bins. Sums over rows depend
    on the number of threads, so one thread grows all trees of a bit, and several bits are fitted at a time.

    Parameters
    ----------
    n_trees, learning_rate : of the boosting
    max_depth : at most 12
    min_samples_leaf : lowered to a tenth of the rows if that is less
    """

    n_trees: int = 200
    max_depth: int = 4
    learning_rate: float = 0.1
    min_samples_leaf: int = 20

    name: ClassVar[str] = "trees"
    accepts_sparse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in ("n_trees", "min_samples_leaf"):
            whole_number(getattr(self, field), field, least=1)
        whole_number(self.max_depth, "max_depth", least=1, most=DEEPEST)
        positive(self.learning_rate, "learning_rate")

    def _fit(self, data: Training) -> ForestMargins:
        X, bits = data.X, data.bits
        if sp.issparse(X):
            raise TypeError("trees need dense X, got a sparse matrix; pass X.toarray(), or use linear_svm or rbf_svm")
        booster = HistGradientBoostingClassifier(
            max_iter=self.n_trees,
            max_depth=self.max_depth,
            max_leaf_nodes=None,
            learning_rate=self.learning_rate,
            min_samples_leaf=max(1, min(self.min_samples_leaf, X.shape[0] // SMALL_SAMPLE)),
            early_stopping=False,
            random_state=int(data.rng.integers(2**31 - 1)),
        )

        def fit_one(y: NDArray[np.int8]) -> Any:
            with _one_openmp_thread():
                return clone(booster).fit(X, y)

        boosters = fit_each(fit_one, list(data.codes.T), data.n_jobs, data.progress)
        title = f"boosted trees, {self.n_trees} of depth {self.max_depth}"
        return ForestMargins(as_forests(boosters), X.shape[1], bits, f"{title}, {bits.describe()}")


def _one_openmp_thread() -> AbstractContextManager[Any]:
    """Limit OpenMP to one thread for the calling thread only; our own threads work in parallel."""
    return _controller().limit(limits=1, user_api="openmp")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


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
