"""What every hash function is: a specification that fits, and the fitted functions that give margins."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.rows import checked_matrix
from hashlearn.core.arrays import is_tensor, numbers_at_once, tensor_like
from hashlearn.core.jobs import STAGE
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.hash_functions.batch_invariant import (
    PANEL_ROWS,
    PanelFunction,
    Rows,
    evaluate_in_panels,
    place_matters,
)
from hashlearn.hash_functions.distinct_bits import DistinctBits, distinct_bits

TENSOR_NUMBERS = (1 << 22, 1 << 28)  # size of a temporary on a CPU, and on another device

log = logging.getLogger(__name__)


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
        bits = distinct_bits(codes)
        return self._fit(Training(X, codes[:, bits.columns], bits, rng, n_jobs, progress))

    @abstractmethod
    def _fit(self, data: Training) -> FittedHashFunctions:
        """Learn the distinct bits."""


class FittedHashFunctions(ABC):
    """Functions from features to the margins of all bits; a bit is 1 if its margin is at least 0."""

    kind: ClassVar[str]
    stored: ClassVar[tuple[str, ...]] = ()  # attributes that `state` holds; none: these functions cannot be stored
    # How `evaluate` divides X into panels; see `evaluate_in_panels`.
    _densify: bool = True
    _threads: bool = True
    _fill_up: bool = True
    _panel_rows: int = PANEL_ROWS

    def __init__(self, n_features: int, bits: DistinctBits, description: str) -> None:
        self.n_features = int(n_features)
        self.bits = bits
        self.description = description
        self._prepared: dict[tuple[str, bool], PanelFunction] = {}
        self._prepared_for_tensors: dict[tuple[str, str], tuple[Callable[[Any], Any], int]] = {}

    @property
    def n_bits(self) -> int:
        """Number of bits of a code."""
        return self.bits.n_bits

    def decision_function(self, X: Rows) -> NDArray[Any]:
        """Margins (n, n_bits), float32 for float32 rows, else float64; a tensor on X's device for a tensor."""
        return self.evaluate(X)

    def evaluate(
        self,
        X: Rows,
        finish: Callable[[Any], Any] = lambda margins: margins,
        look_at: Callable[[Rows], None] | None = None,
    ) -> Any:
        """``finish`` applied to the margins, panel by panel while they are in the cache; it must treat rows one by one.

        ``look_at`` is called with every panel of rows before its margins are computed, and may raise. Tensors skip it.
        """
        X = checked_matrix(X, "X") if is_tensor(X) else working_rows(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the hash functions were fitted on {self.n_features}")
        if is_tensor(X):
            return finish(self._tensor_margins(X))
        if self.bits.n_distinct == 0 or X.shape[0] == 0:
            if look_at is not None and X.shape[0]:
                look_at(X)
            return finish(self.bits.expand(np.zeros((X.shape[0], self.bits.n_distinct), dtype=X.dtype)))
        key = (X.dtype.str, sp.issparse(X))
        if key not in self._prepared:
            self._prepared[key] = self._finite_function(X)
        return evaluate_in_panels(
            self._prepared[key],
            X,
            self.bits.n_distinct,
            finish=lambda margins: finish(self.bits.expand(margins)),
            look_at=look_at,
            densify=self._densify,
            threads=self._threads,
            fill_up=self._fill_up,
            panel_rows=self._panel_rows,
        )

    def _tensor_margins(self, X: Any) -> Any:
        """Margins on X's device, many rows at a time. Their last digits may depend on the batch."""
        if self.bits.n_distinct == 0:
            return self.bits.expand(X[:, :0])
        import torch

        key = (str(X.dtype), str(X.device))
        if key not in self._prepared_for_tensors:
            self._prepared_for_tensors[key] = self._tensor_function(X)
        function, width = self._prepared_for_tensors[key]
        rows = max(256, numbers_at_once(X.device, *TENSOR_NUMBERS) // max(width, 1))
        return self.bits.expand(torch.cat([function(X[first : first + rows]) for first in range(0, len(X), rows)]))

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        """A function from rows of a tensor like X to the margins of the distinct bits, and its temporaries' width.

        The default computes margins on the host.
        """
        columns = self.bits.columns

        def through_the_host(rows: Any) -> Any:
            return tensor_like(self.decision_function(rows.cpu().numpy())[:, columns], rows)

        return through_the_host, self.n_features

    @abstractmethod
    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        """A function from a panel of rows to the margins of the distinct bits, and the matrices it multiplies by."""

    def margin_bound(self, entry: float) -> float:
        """An upper limit on the magnitude of margins and intermediate results, for row entries up to ``entry``.

        It is infinite if float64 could overflow; the loader refuses such functions.
        """
        raise TypeError(f"{type(self).__name__} states no bound on its margins")

    def _finite_function(self, X: Rows) -> PanelFunction:
        """The steady function, with float64 for rows whose margins overflow in float32, clipped to float32's range.

        Each row is treated alone, so it has the same margins in every batch.
        """
        if X.dtype == np.float64:
            return self._steady_function(X)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            steady = self._steady_function(X)
        dtype, most = X.dtype, np.finfo(X.dtype).max  # the closure must not hold X

        def margins(panel: Rows) -> NDArray[Any]:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                found = steady(panel).astype(dtype, copy=False)
                overflown = ~np.isfinite(found).all(axis=1)
                if overflown.any():
                    wide, _ = self._panel_function(np.dtype(np.float64), sp.issparse(panel))
                    found[overflown] = np.clip(wide(panel.astype(np.float64)), -most, most)[overflown]
            return found

        return margins

    def _steady_function(self, X: Rows) -> PanelFunction:
        """The panel function; it uses float64 if a row's place in the panel would change its result in X's dtype."""
        function, factors = self._panel_function(X.dtype, sp.issparse(X))
        if not any(place_matters(B) for B in factors):
            return function
        if any(place_matters(B.astype(np.float64)) for B in factors):
            log.warning("this BLAS gives a row other last digits in other batches; bits with margins near 0 may differ")
            return function
        wide, _ = self._panel_function(np.dtype(np.float64), sp.issparse(X))
        return lambda panel: wide(panel.astype(np.float64))

    def state(self) -> dict[str, Any]:
        """Everything needed to rebuild these functions: arrays and plain JSON values only."""
        if not self.stored:
            from hashlearn.hash_functions import HASH_FUNCTIONS  # every hash function with a name can be stored

            raise TypeError(
                f"{self.description}: these hash functions are not plain arrays and cannot be stored without pickle; "
                f"use one of {', '.join(HASH_FUNCTIONS)} if that matters"
            )
        state = {"kind": self.kind, "n_features": self.n_features, "description": self.description, **self.bits.state()}
        for name in self.stored:
            value = getattr(self, name)
            if sp.issparse(value):
                state |= {f"{name}_{part}": getattr(value, part) for part in ("data", "indices", "indptr")}
            else:
                state[name] = value
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FittedHashFunctions:
        """The inverse of ``state``."""
        raise TypeError(f"{cls.__name__} cannot be rebuilt from plain arrays")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}, "_prepared_for_tensors": {}}


def working_rows(X: Rows) -> Rows:
    """X as a 2-D array or CSR of float32 or float64; everything else becomes float64."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, one row for each sample, got shape {X.shape}")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


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
