"""Fitted hash functions: their margins, and what a model file holds of them.

Margins are computed panel by panel, so that each row's result is the same, bit for bit, in every batch. BLAS
selects its kernels by the shape of a product. A row alone and the same row among a thousand may differ in the last
digit and, near zero, in the bit. Dense rows are therefore multiplied in panels of one fixed shape (`full_panel`). BLAS
uses one thread, and Python threads share the panels. If even the place in the panel matters (`place_matters`), float64
is used inside. Sparse products are computed row by row anyway.

What is wrong in a model file must be an error, never a wild read or a NaN later: `Stored` has the checks.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, TypeAlias, get_type_hints

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.rows import checked_matrix
from hashlearn.core.arrays import is_tensor, numbers_at_once, tensor_like
from hashlearn.core.checks import checked_csr
from hashlearn.core.rows import largest_entry
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
# From a panel, dense or CSR with at most PANEL_ROWS rows, to margins; rows after those of the panel are dropped.
PanelFunction: TypeAlias = Callable[[Rows], NDArray[Any]]

REAL = (np.float32, np.float64)  # what the evaluators know
INTEGERS = (np.int8, np.int16, np.int32, np.int64)
SMALLEST_SCALE = float(np.finfo(np.float64).tiny)
LARGEST = float(np.finfo(np.float64).max)

log = logging.getLogger(__name__)


class Stored:
    """How a file holds one field of fitted functions, which declare it as ``name: Annotated[its_type, Stored(…)]``.

    Parameters
    ----------
    shape : names of the dimensions; the first array with a dimension of this name says how long it is
    kind : "real" (finite, float32 or float64), "float32" (finite), "threshold" (+inf is allowed as well),
        "rows" (finite, dense or CSR), "integer"; and without a shape "number" or "flag"
    least, most : range of a number or of integers; the name of a dimension stands for the largest index in it
    """

    def __init__(
        self, *shape: str, kind: str = "real", least: float = SMALLEST_SCALE, most: float | str = LARGEST
    ) -> None:
        self.shape, self.kind, self.least, self.most = shape, kind, least, most

    def converted(self, value: Any) -> Any:
        """A value of this kind as functions compute with it."""
        dtypes: dict[str, Any] = {"real": np.float64, "threshold": np.float64, "float32": np.float32}
        if self.kind in dtypes:
            return np.ascontiguousarray(value, dtypes[self.kind])
        return {"number": float, "flag": bool}.get(self.kind, lambda same: same)(value)

    def parts(self, value: Any, name: str) -> dict[str, Any]:
        """The entries of a state that hold ``value``."""
        if sp.issparse(value):
            return {f"{name}_{part}": getattr(value, part) for part in ("data", "indices", "indptr")}
        return {name: value}

    def read(self, state: dict[str, Any], name: str, sizes: dict[str, int]) -> Any:
        """``state[name]``, refused unless it is of this kind, shape and range. New names of dimensions enter ``sizes``.

        >>> sizes = {"n_features": 3}
        >>> Stored("n_features", "n_bits").read({"weights": np.ones((3, 2))}, "weights", sizes).shape, sizes
        ((3, 2), {'n_features': 3, 'n_bits': 2})
        >>> Stored("n_features", "n_bits").read({"weights": np.ones((3, 4))}, "weights", sizes)
        Traceback (most recent call last):
            ...
        ValueError: weights must have shape (3, 2), got (3, 4)
        >>> Stored("n_bits").read({"weights": np.array([1.0, np.nan])}, "weights", sizes)
        Traceback (most recent call last):
            ...
        ValueError: weights must be finite, got NaN or infinity
        """
        if self.kind in ("flag", "number"):
            return self._single(state.get(name), name)
        if self.kind == "rows" and name not in state:
            data = Stored(f"{name}_entries").read(state, f"{name}_data", sizes)
            indices, indptr = state[f"{name}_indices"], state[f"{name}_indptr"]
            sizes.setdefault(self.shape[0], len(indptr) - 1)
            return checked_csr(data, indices, indptr, [sizes[side] for side in self.shape])
        array = self._array(state.get(name), name)
        expected = [sizes.get(side, "any") for side in self.shape]
        if array.ndim != len(expected) or any(a not in ("any", b) for a, b in zip(expected, array.shape, strict=True)):
            raise ValueError(f"{name} must have shape ({', '.join(map(str, expected))}), got {array.shape}")
        sizes.update(zip(self.shape, array.shape, strict=True))
        if self.kind == "integer":
            most = sizes[self.most] - 1 if isinstance(self.most, str) else self.most
            if array.size and not (self.least <= int(array.min()) and int(array.max()) <= most):
                raise ValueError(f"{name} must lie from {self.least} to {most}, got {array.min()} to {array.max()}")
        elif self.kind == "threshold":
            if array.size and not array.min() > -np.inf:
                raise ValueError(f"{name} must be finite or +inf, got NaN or -inf")
        elif not largest_entry(array) < np.inf:
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        return array

    def _single(self, value: Any, name: str) -> Any:
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false, got {value!r}")
            return value
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or not self.least <= value <= self.most:
            raise ValueError(f"{name} must be a number from {self.least:.3g} to {self.most:.3g}, got {value!r}")
        return value

    def _array(self, value: Any, name: str) -> NDArray[Any]:
        words = {"integer": "integers", "float32": "float32"}.get(self.kind, "real numbers, float32 or float64")
        dtypes = {"integer": INTEGERS, "float32": REAL[:1]}.get(self.kind, REAL)
        if not isinstance(value, np.ndarray) or value.dtype not in dtypes:
            what = "missing" if value is None else f"{type(value).__name__} {getattr(value, 'dtype', '')}".strip()
            raise ValueError(f"{name} must be an array of {words}, got {what}")
        return value


# How a file holds `DistinctBits`.
BITS = {
    "columns": Stored("n_distinct", kind="integer", least=0, most="n_bits"),
    "source": Stored("n_bits", kind="integer", least=-1, most="n_distinct"),
    "signs": Stored("n_bits", kind="integer", least=-1, most=1),
}


class FittedHashFunctions(ABC):
    """Functions from features to the margins of all bits; a bit is 1 if its margin is at least 0.

    A subclass is a dataclass with the fields ``bits`` and ``description``, and with ``n_features`` unless a `Stored`
    array has a dimension of this name. Functions without `Stored` fields cannot be stored.
    """

    kind: ClassVar[str]

    n_features: int
    bits: DistinctBits
    description: str

    def __post_init__(self) -> None:
        self._prepared: dict[tuple[str, Any], Any] = {}
        for name, entry in self.schema().items():
            setattr(self, name, value := entry.converted(getattr(self, name)))
            if "n_features" in entry.shape:
                self.n_features = int(value.shape[entry.shape.index("n_features")])

    @classmethod
    @cache
    def schema(cls) -> dict[str, Stored]:
        """How a file holds the fields, those that are `Stored`."""
        hints = get_type_hints(cls, include_extras=True)
        return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}

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
        n, n_distinct, dtype = X.shape[0], self.bits.n_distinct, X.dtype
        if n_distinct == 0 or n == 0:
            return finish(self.bits.expand(np.zeros((n, n_distinct), dtype)))
        function = self._function(dtype, sp.issparse(X))
        empty = finish(self.bits.expand(np.empty((0, n_distinct), dtype)))
        finished = np.empty((n, *empty.shape[1:]), empty.dtype)
        rows_per_task = PANEL_ROWS * max(1, min(PANELS_PER_TASK, n // (TASKS * PANEL_ROWS)))

        def fill(start: int) -> None:
            stop = min(start + rows_per_task, n)
            margins = np.empty((stop - start, n_distinct), dtype)
            for first in range(start, stop, PANEL_ROWS):
                last = min(first + PANEL_ROWS, stop)
                margins[first - start : last - start] = function(X[first:last])[: last - first]
            finished[start:stop] = finish(self.bits.expand(margins))

        with one_blas_thread():
            list(map_threads(fill, range(0, n, rows_per_task)))
        return finished

    def _tensor_margins(self, X: Any) -> Any:
        """Margins on X's device, many rows at a time. Their last digits may depend on the batch."""
        if self.bits.n_distinct == 0:
            return self.bits.expand(X[:, :0])
        import torch

        function, width = self._once((str(X.dtype), str(X.device)), lambda: self._tensor_function(X))
        rows = max(256, numbers_at_once(X.device, *TENSOR_NUMBERS) // max(width, 1))
        return self.bits.expand(torch.cat([function(X[first : first + rows]) for first in range(0, len(X), rows)]))

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        """A function from rows of a tensor like X to the margins of the distinct bits, and its temporaries' width.

        The default computes margins on the host.
        """

        def through_the_host(rows: Any) -> Any:
            return tensor_like(self.decision_function(rows.cpu().numpy())[:, self.bits.columns], rows)

        return through_the_host, self.n_features

    @abstractmethod
    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        """A function from a panel of rows to the margins of the distinct bits, and the factors of dense products."""

    def _function(self, dtype: np.dtype[Any], sparse: bool) -> PanelFunction:
        """The panel function whose margins are finite, and the same for a row in every batch."""
        function: PanelFunction = self._once((dtype.str, sparse), lambda: self._prepared_function(dtype, sparse))
        return function

    def _prepared_function(self, dtype: np.dtype[Any], sparse: bool) -> PanelFunction:
        """Rows of float32 are computed in float64 if their place in the panel matters or their margins overflow."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            function, factors = self._panel_function(dtype, sparse)
            is_invariant = not any(place_matters(B) for B in factors)
        if dtype == np.float64:
            if not is_invariant:
                log.warning("this BLAS gives a row other last digits in other batches; bits with margins near 0 differ")
            return function
        most = np.finfo(dtype).max

        def in_float64(panel: Rows) -> NDArray[Any]:
            return self._function(np.dtype(np.float64), sparse)(panel.astype(np.float64))

        def margins(panel: Rows) -> NDArray[Any]:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                result = (function if is_invariant else in_float64)(panel).astype(dtype, copy=False)
                overflown = ~np.isfinite(result).all(axis=1)
                if overflown.any():
                    result[overflown] = np.clip(in_float64(panel), -most, most)[overflown]
            return result

        return margins

    def _once(self, key: tuple[str, Any], make: Callable[[], Any]) -> Any:
        """What ``make`` returned at the first call with this key."""
        if key not in self._prepared:
            self._prepared[key] = make()
        return self._prepared[key]

    def state(self) -> dict[str, Any]:
        """Everything needed to rebuild these functions: arrays and plain JSON values only."""
        if not self.schema():
            from hashlearn.hash_functions import HASH_FUNCTIONS  # every hash function with a name can be stored

            raise TypeError(
                f"{self.description}: these hash functions are not plain arrays and cannot be stored without pickle; "
                f"use one of {', '.join(HASH_FUNCTIONS)} if that matters"
            )
        state = {"kind": self.kind, "n_features": self.n_features, "description": self.description}
        state |= {f"bit_{name}": getattr(self.bits, name) for name in BITS}
        for name, entry in self.schema().items():
            state |= entry.parts(getattr(self, name), name)
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> FittedHashFunctions:
        """The inverse of ``state``; a state that does not fit the schema is a ValueError."""
        n_features = int(state["n_features"])
        sizes = {"n_features": n_features, "n_distinct": len(state["bit_columns"]), "n_bits": len(state["bit_source"])}
        columns, source, signs = (entry.read(state, f"bit_{name}", sizes) for name, entry in BITS.items())
        if not signs.all():
            raise ValueError("bit_signs must hold only -1 and +1")
        bits = DistinctBits(columns.astype(np.intp), source.astype(np.intp), signs.astype(np.int8))
        values = {"bits": bits, "description": state["description"], "n_features": n_features}
        values |= {name: entry.read(state, name, sizes) for name, entry in cls.schema().items()}
        return cls(**{field.name: values[field.name] for field in fields(cls)})  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": {}}


def working_rows(X: Rows) -> Rows:
    """X as a 2-D array or CSR of float32 or float64; everything else becomes float64."""
    X = sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, one row for each sample, got shape {X.shape}")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def full_panel(rows: Rows) -> NDArray[Any]:
    """The rows as a dense, C-contiguous panel of the one fixed shape: zero rows are added below."""
    dense = rows.toarray() if sp.issparse(rows) else rows
    if len(dense) == PANEL_ROWS:
        return np.ascontiguousarray(dense)
    panel = np.zeros((PANEL_ROWS, dense.shape[1]), dtype=dense.dtype)
    panel[: len(dense)] = dense
    return panel


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
