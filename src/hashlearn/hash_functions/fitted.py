"""Fitted hash functions: margins panel by panel, so that each row's result is the same, bit for bit, in every batch.

BLAS selects its kernels by the shape of a product. A row alone and the same row among a thousand may differ in the
last digit and, near zero, in the bit. Dense rows are therefore evaluated in panels of one fixed shape; zero rows are
added to the last one. BLAS uses one thread, and Python threads share the panels. If even the place in the panel
matters (`place_matters`), float64 is used inside. Sparse products are computed row by row anyway.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.rows import checked_matrix
from hashlearn.core.arrays import is_tensor, numbers_at_once, tensor_like
from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.hash_functions.distinct_bits import DistinctBits

# A multiple of 64 and of 3: OpenBLAS divides float64 rows into tiles of 24 and uses another kernel for the rest.
# Large enough for matrix products at nearly full speed, small enough for a single query.
PANEL_ROWS = 192
# Starting a task takes as long as the product of a narrow panel, so a task has several panels, unless there are too
# few to keep all cores busy.
PANELS_PER_TASK, TASKS = 8, 64

TENSOR_NUMBERS = (1 << 22, 1 << 28)  # size of a temporary on a CPU, and on another device

Rows: TypeAlias = Any  # NDArray of float32 or float64, or CSR of them
PanelFunction: TypeAlias = Callable[[Rows], NDArray[Any]]

log = logging.getLogger(__name__)


class FittedHashFunctions(ABC):
    """Functions from features to the margins of all bits; a bit is 1 if its margin is at least 0."""

    kind: ClassVar[str]
    stored: ClassVar[tuple[str, ...]] = ()  # attributes that `state` holds; none: these functions cannot be stored
    _densify: bool = True  # make sparse panels dense
    _threads: bool = True  # evaluate panels in several threads
    _fill_up: bool = True  # add zero rows to the last panel; functions that treat rows one by one do not need it
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

    def evaluate(self, X: Rows, finish: Callable[[Any], Any] = lambda margins: margins) -> Any:
        """``finish`` applied to the margins, panel by panel in the cache; it must treat rows one by one."""
        X = checked_matrix(X, "X") if is_tensor(X) else working_rows(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the hash functions were fitted on {self.n_features}")
        if is_tensor(X):
            return finish(self._tensor_margins(X))
        if self.bits.n_distinct == 0 or X.shape[0] == 0:
            return finish(self.bits.expand(np.zeros((X.shape[0], self.bits.n_distinct), dtype=X.dtype)))
        key = (X.dtype.str, sp.issparse(X))
        if key not in self._prepared:
            self._prepared[key] = self._finite_function(X)
        return self._in_panels(self._prepared[key], X, finish)

    def _in_panels(self, function: PanelFunction, X: Rows, finish: Callable[[Any], Any]) -> NDArray[Any]:
        """``finish`` applied to the margins of every task of several panels, stacked."""
        n, panel_rows = X.shape[0], self._panel_rows
        none = finish(self.bits.expand(np.empty((0, self.bits.n_distinct), dtype=X.dtype)))
        finished = np.empty((n, *none.shape[1:]), dtype=none.dtype)
        rows_per_task = panel_rows * max(1, min(PANELS_PER_TASK, n // (TASKS * panel_rows)))

        def fill(start: int) -> None:
            stop = min(start + rows_per_task, n)
            margins = np.empty((stop - start, self.bits.n_distinct), dtype=X.dtype)
            for first in range(start, stop, panel_rows):
                last = min(first + panel_rows, stop)
                panel = X[first:last]
                if sp.issparse(panel) and self._densify:
                    panel = panel.toarray()
                if not sp.issparse(panel):
                    panel = filled_up(panel, panel_rows if self._fill_up else last - first)
                margins[first - start : last - start] = function(panel)[: last - first]
            finished[start:stop] = finish(self.bits.expand(margins))

        starts = range(0, n, rows_per_task)
        with one_blas_thread():
            for _ in map_threads(fill, starts) if self._threads and len(starts) > 1 else map(fill, starts):
                pass
        return finished

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


def place_matters(B: NDArray[Any]) -> bool:
    """Whether the product of one row with B depends on the row's place in a panel.

    This is tried on this machine's BLAS, with eight random rows in many places of the panel. OpenBLAS's float32 product
    for processors without AVX-512 does depend on it.
    """
    rows = np.random.default_rng(0).standard_normal((8, B.shape[0])).astype(B.dtype)
    with one_blas_thread():
        for who in (np.arange(PANEL_ROWS) % 8, np.arange(PANEL_ROWS) // (PANEL_ROWS // 8)):
            products = rows[who] @ B
            first = np.unique(who, return_index=True)[1]
            if not np.array_equal(products, products[first][who], equal_nan=True):
                return True
    return False


def filled_up(rows: NDArray[Any], count: int) -> NDArray[Any]:
    """Rows with zero rows added below, ``count`` in all."""
    if len(rows) == count:
        return np.ascontiguousarray(rows)
    panel = np.zeros((count, rows.shape[1]), dtype=rows.dtype)
    panel[: len(rows)] = rows
    return panel
