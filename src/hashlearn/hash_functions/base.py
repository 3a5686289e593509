"""What every hash function is: a specification that fits, and the fitted functions that give margins."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.rows import checked_matrix
from hashlearn.core.arrays import is_tensor, tensor_like
from hashlearn.core.progress import ProgressCallback
from hashlearn.hash_functions.batch_invariant import (
    PANEL_ROWS,
    PanelFunction,
    Rows,
    evaluate_in_panels,
    place_matters,
)
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.tensors import evaluate_in_chunks, expand

STAGE = "hash functions"  # what a progress callback is told

log = logging.getLogger(__name__)


@runtime_checkable
class HashFunction(Protocol):
    """A frozen dataclass of hyper-parameters that can fit."""

    name: ClassVar[str]
    accepts_sparse: ClassVar[bool]

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
        X : finite rows, float32 or float64, dense or CSR where the method takes it
        codes : −1 and +1, shape (n, n_bits)
        rng : all randomness
        n_jobs : threads (processes for a scikit-learn classifier of yours); None: all cores, -1 likewise
        progress : called with (done, total), counted in distinct bits
        """


class FittedHashFunctions(ABC):
    """Functions features → margins for all bits; a code's bit is 1 where its margin is at least 0."""

    kind: ClassVar[str]
    # How `decision_function` cuts X; see `evaluate_in_panels`.
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
        """Margins (n, n_bits) in X's working dtype: float32 for float32, else float64. A tensor's are a tensor."""
        return self.evaluate(X)

    def evaluate(
        self,
        X: Rows,
        finish: Callable[[Any], Any] = lambda margins: margins,
        look_at: Callable[[Rows], None] | None = None,
    ) -> Any:
        """``finish`` of the margins: of a panel's while they are in the cache, so it must look at one row at a time.

        ``look_at`` is shown every panel of rows before its margins are taken, and may raise; no tensors.
        """
        if is_tensor(X):
            return finish(self._of_tensor(X))
        X = working_rows(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the hash functions were fitted on {self.n_features}")
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

    def _of_tensor(self, X: Any) -> Any:
        X = checked_matrix(X, "X")
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the hash functions were fitted on {self.n_features}")
        if self.bits.n_distinct == 0:
            return expand(self.bits, X[:, :0])
        key = (str(X.dtype), str(X.device))
        if key not in self._prepared_for_tensors:
            self._prepared_for_tensors[key] = self._tensor_function(X)
        function, width = self._prepared_for_tensors[key]
        return expand(self.bits, evaluate_in_chunks(function, X, width))

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        """From rows of a tensor like X to the margins of the distinct bits, and the numbers a row makes on the way.

        Unless a kind of functions knows better: through the host.
        """
        columns = self.bits.columns

        def through_the_host(rows: Any) -> Any:
            return tensor_like(self.decision_function(rows.cpu().numpy())[:, columns], rows)

        return through_the_host, self.n_features

    @abstractmethod
    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        """From a panel of rows to the margins of the distinct bits, and the matrices that BLAS multiplies rows by."""

    def margin_bound(self, entry: float) -> float:
        """No margin is larger in size, nor any number on the way to it, for rows with entries up to ``entry`` in size.

        Infinite where float64 could overflow; the loader refuses such functions.
        """
        raise TypeError(f"{type(self).__name__} states no bound on its margins")

    def _finite_function(self, X: Rows) -> PanelFunction:
        """The steady function. Rows whose margins overflow in float32 are computed in float64, cut to float32's range.

        Each row is looked at alone, so it has the same margins in every batch.
        """
        if X.dtype == np.float64:
            return self._steady_function(X)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            steady = self._steady_function(X)
        dtype, most = X.dtype, np.finfo(X.dtype).max  # X itself must not be kept

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
        """The panel function; float64 inside where, in X's dtype, a row's place in the panel would change it."""
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
        raise TypeError(
            f"{self.description}: these hash functions are not plain arrays and cannot be stored without pickle; "
            "use rbf_svm, kernel_ridge, linear_svm, linear_ridge, logistic or trees where that matters"
        )

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FittedHashFunctions:
        """The inverse of ``state``."""
        raise TypeError(f"{cls.__name__} cannot be rebuilt from plain arrays")

    def _base_state(self) -> dict[str, Any]:
        plain = {"kind": self.kind, "n_features": self.n_features, "description": self.description}
        return {**plain, **self.bits.state()}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}, "_prepared_for_tensors": {}}


def working_rows(X: Rows) -> Rows:
    """X as a 2-D array or CSR of float32 or float64; everything else becomes float64."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, one row for each sample, got shape {X.shape}")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def training_pair(X: Rows, codes: NDArray[np.int8]) -> tuple[Rows, NDArray[np.int8]]:
    """X and codes as `fit` wants them: X row-major, so that its memory order cannot change a result."""
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
