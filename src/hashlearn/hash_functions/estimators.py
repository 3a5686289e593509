"""Any scikit-learn classifier as a hash function: cloned and fitted once for each distinct bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from hashlearn.core.threads import on_this_thread, one_blas_thread
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction, Rows, full_panel
from hashlearn.hash_functions.hash_function import HashFunction, Training, with_progress


@dataclass(eq=False)
class EstimatorMargins(FittedHashFunctions):
    """A fitted classifier for each distinct bit."""

    kind = "estimators"

    estimators: Sequence[Any]
    n_features: int
    bits: DistinctBits
    description: str

    def evaluate(self, X: Rows, finish: Callable[[Any], Any] = lambda margins: margins) -> Any:
        """``finish`` applied to the margins, on one thread: a user's classifier need not be thread-safe."""
        with on_this_thread():
            return super().evaluate(X, finish)

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        def margins(panel: Rows) -> NDArray[Any]:
            rows = panel if sparse else full_panel(panel)  # a classifier may treat sparse and dense rows differently
            return np.column_stack([margin(estimator, rows) for estimator in self.estimators]).astype(dtype)

        return margins, []


@dataclass(frozen=True)
class SklearnHashFunctions(HashFunction):
    """Wraps a classifier with `fit` and `predict`.

    The margin is its `decision_function`, else P(+1) − P(−1) of `predict_proba`, else its prediction, −1 or +1. A
    ``random_state`` that is None is drawn from the generator. ``n_jobs`` counts processes here, and None is one.
    """

    estimator: Any

    name: ClassVar[str] = "sklearn"
    accepts_sparse: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.estimator, type) or not (
            hasattr(self.estimator, "fit") and hasattr(self.estimator, "predict")
        ):
            raise TypeError(
                "estimator must be a scikit-learn classifier object, with fit and predict, "
                f"got {self.estimator!r}" + ("; call it to make one" if isinstance(self.estimator, type) else "")
            )

    def _fit(self, data: Training) -> EstimatorMargins:
        X, bits = data.X, data.bits
        seed = int(data.rng.integers(2**31 - 1))
        jobs = (delayed(_fit_clone)(self.estimator, seed, X, y) for y in data.codes.T)
        results = Parallel(n_jobs=data.n_jobs, return_as="generator")(jobs)
        fitted = with_progress(results, data)
        return EstimatorMargins(fitted, X.shape[1], bits, f"{type(self.estimator).__name__}, {bits.describe()}")


def margin(estimator: Any, rows: Rows) -> NDArray[Any]:
    """Margins of one fitted classifier of −1 against +1; at least 0 means +1."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(rows)).ravel()
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(rows))
        return probabilities[:, 1] - probabilities[:, 0]
    return np.asarray(estimator.predict(rows)).ravel()


def _fit_clone(estimator: Any, seed: int, X: Rows, y: NDArray[np.int8]) -> Any:
    fresh = clone(estimator)
    if fresh.get_params().get("random_state", 0) is None:
        fresh.set_params(random_state=seed)
    with one_blas_thread():
        return fresh.fit(X, y)
