"""What every hash function is: a specification whose ``fit`` gives fitted functions; and any classifier as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import n_threads, on_this_thread, one_blas_thread
from hashlearn.hash_functions.distinct_bits import DistinctBits, distinct_bits
from hashlearn.hash_functions.fitted import FittedHashFunctions, PanelFunction, Rows, full_panel, working_rows

STAGE = "hash functions"
Item = TypeVar("Item")
Result = TypeVar("Result")


class Training(NamedTuple):
    """What a hash function learns from."""

    X: Rows  # finite rows, float32 or float64; C-contiguous or CSR
    codes: NDArray[np.int8]  # −1 and +1, shape (n, n_distinct): the distinct bits only
    bits: DistinctBits
    rng: np.random.Generator
    n_jobs: int | None
    progress: ProgressCallback | None

    def tell_done(self) -> None:
        """Report progress for methods that fit all bits at once."""
        tell(self.progress, STAGE, self.bits.n_distinct, self.bits.n_distinct)


class HashFunction(ABC):
    """Hyper-parameters that can fit. A subclass is a frozen dataclass with a ``name`` and a method ``_fit``."""

    name: ClassVar[str]
    accepts_sparse: ClassVar[bool] = True

    def fit(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> FittedHashFunctions:
        """Learn all bits of ``codes`` from X.

        Parameters
        ----------
        X : finite rows, float32 or float64, dense or, if the method accepts it, CSR
        codes : −1 and +1, shape (n, n_bits)
        rng : source of all randomness
        n_jobs : threads (processes for a scikit-learn classifier of yours); None or -1 for all cores
        progress : called with a `hashlearn.core.progress.Progress`, counted in distinct bits
        """
        X, codes = working_rows(X), np.asarray(codes)
        if codes.ndim != 2 or codes.shape[0] != X.shape[0] or 0 in codes.shape:
            raise ValueError(
                f"codes must have shape (n_samples, n_bits) with n_samples = {X.shape[0]} of X and n_bits of at least "
                f"1, got {codes.shape}"
            )
        if not (np.abs(codes) == 1).all():
            raise ValueError("codes must hold only -1 and +1; from bits 0 and 1 they are 2 * bits - 1")
        X, codes = X if sp.issparse(X) else np.ascontiguousarray(X), codes.astype(np.int8)
        self.require_rows(X)
        bits = distinct_bits(codes)
        tell(progress, STAGE, 0, bits.n_distinct)
        return self._fit(Training(X, codes[:, bits.columns], bits, rng, n_jobs, progress))

    def require_rows(self, X: Rows) -> None:  # noqa: B027 (most methods learn from any rows)
        """Refuse rows that this method cannot learn from; a hasher asks before it infers codes."""

    @abstractmethod
    def _fit(self, data: Training) -> FittedHashFunctions:
        """Learn the distinct bits."""


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
        fitted = fit_each(partial(_fit_clone, self.estimator, seed, X), list(data.codes.T), data, in_threads=False)
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


def fit_each(
    function: Callable[[Item], Result], items: Sequence[Item], data: Training, in_threads: bool = True
) -> list[Result]:
    """``function`` of every item, one for each distinct bit, on ``n_jobs`` threads or processes, counted as in joblib.

    Of threads, None and −1 are all that we may use. Results come in order, so their number has no effect. Progress is
    reported after each.
    """
    count = n_threads() if in_threads and data.n_jobs in (None, -1) else data.n_jobs
    parallel = Parallel(n_jobs=count, prefer="threads" if in_threads else None, return_as="generator")
    done: list[Result] = []
    for result in parallel(delayed(function)(item) for item in items):
        done.append(result)
        tell(data.progress, STAGE, len(done), data.bits.n_distinct)
    return done
