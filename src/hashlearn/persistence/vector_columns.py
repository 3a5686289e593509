"""A column of vectors as one array of rows: of pandas, Polars, Arrow, or a list of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require


def vector_rows(X: Any, n_features: int, name: str) -> Any:
    """Rows (n, n_features) of a column of vectors; anything else, such as an array of rows, unchanged.

    ``name`` names the column in errors.

    >>> vector_rows([[1.0, 2.0], [3.0, 4.0]], 2, "column 'x'").shape, vector_rows([], 2, "column 'x'").shape
    ((2, 2), (0, 2))
    >>> vector_rows([[1.0, 2.0], [3.0]], 2, "column 'x'")
    Traceback (most recent call last):
        ...
    ValueError: column 'x' has 1 number(s) at row 1; the model takes 2
    """
    library = type(X).__module__.partition(".")[0]
    is_column = not hasattr(X, "columns")  # a Series, which has no columns, or an Arrow array
    if library == "polars" and is_column:
        X, library = X.to_arrow(), "pyarrow"
    if library == "pyarrow" and is_column:
        chunks = X.chunks if hasattr(X, "chunks") else [X]
        parts, first = [np.zeros((0, n_features))] if not chunks else [], 0
        for chunk in chunks:
            parts.append(_arrow_rows(chunk, n_features, name, first))
            first += len(chunk)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
    is_objects = isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1
    if not is_objects and not isinstance(X, list | tuple) and not (library == "pandas" and is_column):
        return X
    vectors = list(X)
    for row, vector in enumerate(vectors):
        shape = np.shape(vector)  # () for a missing value
        if shape != (n_features,):
            raise _wrong_row(name, row, shape[0] if len(shape) == 1 else None, n_features)
    return np.stack(vectors) if vectors else np.zeros((0, n_features))


def _arrow_rows(values: Any, n_features: int, name: str, first: int) -> NDArray[Any]:
    """The rows of an Arrow array of lists, without an object for each row. ``first`` is the number of its first row."""
    types = require("pyarrow.types", "parquet", "encoding Arrow arrays")
    fixed = types.is_fixed_size_list(values.type)
    if not fixed and not types.is_list(values.type) and not types.is_large_list(values.type):
        raise TypeError(f"{name} must hold lists of numbers, got Arrow type {values.type}")
    if values.null_count:
        raise _wrong_row(name, first + _first(values.is_null()), None, n_features)
    lengths = np.full(len(values), values.type.list_size) if fixed else values.value_lengths().to_numpy()
    if (lengths != n_features).any():
        row = int(np.argmax(lengths != n_features))
        raise _wrong_row(name, first + row, int(lengths[row]), n_features)
    numbers = values.flatten()
    if numbers.null_count:
        row, place = divmod(_first(numbers.is_null()), n_features)
        raise ValueError(f"{name} has no number at row {first + row}, column {place}; every feature is needed")
    rows: NDArray[Any] = numbers.to_numpy(zero_copy_only=False).reshape(-1, n_features)
    return rows


def _first(truths: Any) -> int:
    return int(np.argmax(truths.to_numpy(zero_copy_only=False)))


def _wrong_row(name: str, row: int, length: int | None, n_features: int) -> ValueError:
    found = "no vector" if length is None else f"{length} number(s)"
    return ValueError(f"{name} has {found} at row {row}; the model takes {n_features}")
