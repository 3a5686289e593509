"""The schema of fitted functions: what a model file holds of them, and the checks of what it gives back.

What is wrong in a file must be an error, never a wild read or a NaN later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.checks import checked_csr
from hashlearn.core.rows import largest_entry

REAL = (np.float32, np.float64)  # what the evaluators know
SMALLEST_SCALE = float(np.finfo(np.float64).tiny)
LARGEST = float(np.finfo(np.float64).max)


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
        kinds = "integers" if self.kind == "integer" else "real numbers, float32 or float64"
        dtype = getattr(value, "dtype", np.dtype(object))
        if not isinstance(value, np.ndarray) or not (dtype.kind == "i" if kinds == "integers" else dtype in REAL):
            what = "missing" if value is None else f"{type(value).__name__} {getattr(value, 'dtype', '')}".strip()
            raise ValueError(f"{name} must be an array of {kinds}, got {what}")
        if self.kind == "float32" and dtype != np.float32:
            raise ValueError(f"{name} must be an array of float32, got {dtype}")
        return value
