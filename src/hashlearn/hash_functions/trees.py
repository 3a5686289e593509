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
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import ThreadpoolController

from hashlearn.core.checks import positive, whole_number
from hashlearn.core.jobs import fit_each
from hashlearn.core.progress import ProgressCallback
from hashlearn.hash_functions.base import training_pair
from hashlearn.hash_functions.batch_invariant import PanelFunction, Rows
from hashlearn.hash_functions.booster_arrays import as_forests
from hashlearn.hash_functions.distinct_bits import distinct_bits
from hashlearn.hash_functions.estimators import EstimatorMargins
from hashlearn.hash_functions.forest_margins import ForestMargins

SMALL_SAMPLE = 10  # a leaf holds at most one in so many of the rows, however few there are


class TreeMargins(EstimatorMargins):
    """Trees look at one row at a time, so panels may be tall and need no filling up."""

    _panel_rows = 2048
    _fill_up = False
    _threads = True
    _densify = True

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        margins, _ = super()._panel_function(dtype, sparse)

        def alone(panel: Rows) -> NDArray[Any]:
            with _one_openmp_thread():
                return margins(panel)

        return alone, []

    def state(self) -> dict[str, Any]:
        """That of `ForestMargins`, which gives the same margins from plain arrays."""
        return ForestMargins(as_forests(self.estimators), self.n_features, self.bits, self.description).state()


@dataclass(frozen=True)
class Trees:
    """scikit-learn's histogram gradient boosting on the logistic loss; the margin is the log odds. Dense X only.

    Deviations from FastHash: logistic instead of hinge loss, and features cut into 255 bins. Sums over rows depend on
    the number of threads, so each bit is grown by one thread, and bits are spread over threads.

    Parameters
    ----------
    n_trees, max_depth, learning_rate : of the boosting
    min_samples_leaf : lowered to a tenth of the rows where that is less
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

    def fit(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> TreeMargins:
        """Learn all bits; see `HashFunction.fit`."""
        if sp.issparse(X):
            raise TypeError("trees need dense X, got a sparse matrix; pass X.toarray(), or use linear_svm or rbf_svm")
        X, codes = training_pair(X, codes)
        bits = distinct_bits(codes)
        seed = int(rng.integers(2**31 - 1))

        def fit_one(y: NDArray[np.int8]) -> Any:
            with _one_openmp_thread():
                return self._booster(X.shape[0], seed).fit(X, y)

        boosters = fit_each(fit_one, list(codes[:, bits.columns].T), n_jobs, progress)
        title = f"boosted trees, {self.n_trees} of depth {self.max_depth}"
        return TreeMargins(boosters, X.shape[1], bits, f"{title}, {bits.describe()}")

    def _booster(self, n: int, seed: int) -> HistGradientBoostingClassifier:
        return HistGradientBoostingClassifier(
            max_iter=self.n_trees,
            max_depth=self.max_depth,
            max_leaf_nodes=None,
            learning_rate=self.learning_rate,
            min_samples_leaf=max(1, min(self.min_samples_leaf, n // SMALL_SAMPLE)),
            early_stopping=False,
            random_state=seed,
        )


@contextmanager
def _one_openmp_thread() -> Iterator[None]:
    """For the calling thread only, that is how OpenMP counts: our own threads are the parallel ones."""
    with _controller().limit(limits=1, user_api="openmp"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
