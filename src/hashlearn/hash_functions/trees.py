"""``"trees"``: boosted trees for each distinct bit, as in FastHash: 200 trees of depth 4. O(n · n_features) a tree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import ThreadpoolController

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.jobs import fit_each
from hashlearn.hash_functions.base import HashFunction, Training
from hashlearn.hash_functions.batch_invariant import PanelFunction, Rows
from hashlearn.hash_functions.estimators import EstimatorMargins
from hashlearn.hash_functions.forests import ForestMargins, as_forests

SMALL_SAMPLE = 10  # min_samples_leaf is at most the number of rows divided by this


class TreeMargins(EstimatorMargins):
    """Boosters. Trees treat rows one by one, so panels may have many rows and need no zero rows added."""

    _panel_rows = 2048
    _fill_up = False
    _threads = True
    _densify = True

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        margins, _ = super()._panel_function(dtype, sparse)

        def on_one_thread(panel: Rows) -> NDArray[Any]:
            with _one_openmp_thread():
                return margins(panel)

        return on_one_thread, []

    def state(self) -> dict[str, Any]:
        """The state of `ForestMargins`, which computes the same margins from plain arrays."""
        return ForestMargins(as_forests(self.estimators), self.n_features, self.bits, self.description).state()


@dataclass(frozen=True)
class Trees(HashFunction):
    """scikit-learn's histogram gradient boosting on the logistic loss; the margin is the log odds. Dense X only.

    Deviations from FastHash: logistic instead of hinge loss, and features divided into 255 bins. Sums over rows depend
    on the number of threads, so one thread grows all trees of a bit, and several bits are fitted at a time.

    Parameters
    ----------
    n_trees, max_depth, learning_rate : of the boosting
    min_samples_leaf : lowered to a tenth of the rows if that is less
    """

    n_trees: int = 200
    max_depth: int = 4
    learning_rate: float = 0.1
    min_samples_leaf: int = 20

    name: ClassVar[str] = "trees"
    accepts_sparse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in ("n_trees", "max_depth", "min_samples_leaf"):
            whole_number(getattr(self, field), field, least=1)
        positive(self.learning_rate, "learning_rate")

    def _fit(self, data: Training) -> TreeMargins:
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
        return TreeMargins(boosters, X.shape[1], bits, f"{title}, {bits.describe()}")


@contextmanager
def _one_openmp_thread() -> Iterator[None]:
    """Limit OpenMP to one thread for the calling thread only; our own threads work in parallel."""
    with _controller().limit(limits=1, user_api="openmp"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
