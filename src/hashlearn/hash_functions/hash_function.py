"""What every hash function is: a specification whose ``fit`` gives fitted functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import n_threads
from hashlearn.hash_functions.distinct_bits import DistinctBits, distinct_bits
from hashlearn.hash_functions.fitted import FittedHashFunctions, Rows, working_rows

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
        X, codes = training_pair(X, codes)
        self.require_rows(X)
        bits = distinct_bits(codes)
        tell(progress, STAGE, 0, bits.n_distinct)
        return self._fit(Training(X, codes[:, bits.columns], bits, rng, n_jobs, progress))

    def require_rows(self, X: Rows) -> None:  # noqa: B027 (most methods learn from any rows)
        """Refuse rows that this method cannot learn from; a hasher asks before it infers codes."""

    @abstractmethod
    def _fit(self, data: Training) -> FittedHashFunctions:
        """Learn the distinct bits."""


def training_pair(X: Rows, codes: NDArray[np.int8]) -> tuple[Rows, NDArray[np.int8]]:
    """X and codes, checked; X is row-major, so that its memory order cannot change a result."""
    X = working_rows(X)
    codes = np.asarray(codes)
    if codes.ndim != 2 or codes.shape[0] != X.shape[0] or 0 in codes.shape:
        raise ValueError(
            f"codes must have shape (n_samples, n_bits) with n_samples = {X.shape[0]} of X and n_bits of at least 1, "
            f"got {codes.shape}"
        )
    if not (np.abs(codes) == 1).all():
        raise ValueError("codes must hold only -1 and +1; from bits 0 and 1 they are 2 * bits - 1")
    return X if sp.issparse(X) else np.ascontiguousarray(X), codes.astype(np.int8)


def fit_each(function: Callable[[Item], Result], items: Sequence[Item], data: Training) -> list[Result]:
    """``function`` of every item on ``n_jobs`` threads, counted as in joblib; None or −1: all that we may use.

    Results come in order, so the number of threads has no effect.
    """
    count = n_threads() if data.n_jobs in (None, -1) else data.n_jobs
    results = Parallel(n_jobs=count, prefer="threads", return_as="generator")(delayed(function)(item) for item in items)
    return with_progress(results, data)


def with_progress(results: Iterable[Result], data: Training) -> list[Result]:
    """The results of the distinct bits as a list; progress is reported after each."""
    done: list[Result] = []
    for result in results:
        done.append(result)
        tell(data.progress, STAGE, len(done), data.bits.n_distinct)
    return done
