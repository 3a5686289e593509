"""Data sets of your own: ``.npz``, ``.npy`` and Parquet files, read whole.

An ``.npz`` has ``X`` (n, d) numbers; optional ``y`` (n,) whole numbers or strings; optional ``names``, one for each
class, which makes y indices into it; optional ``split`` (n,) strings. In a Parquet file ``y`` and ``split`` are
columns. X is its only column of lists, or else all columns of numbers but ``y``, ``split`` and ``id``. An ``.npy`` is
X alone.

In ``split`` "test" marks the queries, "train" the rows to learn from and to search, "database" rows that are searched
only. Rows are sorted so that queries come last, as in all data sets. Nothing is unpickled. Without ``y`` there are no
labels: only tables that score neighbors of the vectors can use such a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.experiments.datasets.dataset import DataError, DataSet, Provenance
from hashlearn.experiments.datasets.files import provenance_of

SUFFIXES = (".npz", ".npy", ".parquet")
GIVEN = "given"
LICENSE = "whatever its maker says"
KEYS = ("X", "y", "names", "split")
NOT_FEATURES = ("y", "split", "id")  # columns of a Parquet file


def read_file(path: Path) -> DataSet:
    """The data set in a file."""
    arrays = _arrays(path, KEYS)
    X, y = _samples(path, arrays.pop("X")), arrays.get("y")
    labels, class_names = np.zeros(len(X), np.int64), tuple[str, ...]()
    if y is not None:
        if y.ndim != 1 or len(y) != len(X):
            raise DataError(f"{path}: y has shape {y.shape}, expected ({len(X)},) to go with X of shape {X.shape}")
        labels, class_names = _labels(path, y, arrays.get("names"))
    parts = _parts(path, arrays.get("split"), len(X))
    is_query = None
    if parts is not None:
        order = np.argsort(parts == "test", kind="stable")
        X, labels, parts = X[order], labels[order], parts[order]
        is_query = parts == "test"
    provenance = Provenance(f"the file {path.name}", LICENSE, (provenance_of(path, path.name),), {"name": GIVEN})
    return DataSet(path.stem, GIVEN, X, labels, class_names, is_query, None, provenance, parts)


def near_file(name: str) -> str:
    """A hint that names a file of the current folder, if only its ending is missing; else an empty string."""
    here = [name + suffix for suffix in SUFFIXES if Path(name + suffix).is_file()]
    return f"; did you mean the file {here[0]!r}?" if here else ""


def file_has_labels(path: Path) -> bool:
    """Whether the file has a part ``y``."""
    from hashlearn.files.numpy_files import npz_names

    if path.suffix == ".npz":
        return "y" in npz_names(path)
    return path.suffix == ".parquet" and "y" in _schema(path).names


def _arrays(path: Path, keys: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    from hashlearn.files.numpy_files import npz_names, numpy_array  # here: listing data sets rarely needs it

    try:
        if path.suffix == ".parquet":
            return _columns(path)
        if path.suffix == ".npy":
            return {"X": numpy_array(path)}
        names = npz_names(path)
        if "X" not in names:
            raise DataError(f"{path}: has no X, only {', '.join(names) or 'nothing'}")
        return {key: numpy_array(path, key) for key in keys if key in names}
    except DataError:
        raise
    except (OSError, ValueError) as error:
        text = str(error)
        raise DataError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _columns(path: Path) -> dict[str, NDArray[Any]]:
    """X, and y and split if there are such columns."""
    from hashlearn.files import open_rows
    from hashlearn.files.table_files import label_columns

    types, schema = require("pyarrow.types", "parquet", "reading Parquet files"), _schema(path)
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    has_lists = any(is_kind(field.type) for field in schema for is_kind in lists)
    numbers = [
        field.name
        for field in schema
        if field.name not in NOT_FEATURES and (types.is_integer(field.type) or types.is_floating(field.type))
    ]
    rows = open_rows(path, names=None if has_lists or not numbers else numbers)
    found = {name: label_columns(path, name) for name in ("y", "split") if name in schema.names}
    return {"X": rows.read(), **found}


def _schema(path: Path) -> Any:
    from hashlearn.search.arrow import reading

    parquet = require("pyarrow.parquet", "parquet", "reading Parquet files")
    with reading(str(path)):
        return parquet.read_schema(path)


def _samples(path: Path, X: NDArray[Any]) -> NDArray[np.float32]:
    if X.ndim != 2 or X.shape[1] == 0 or X.dtype.kind not in "fiub":
        raise DataError(f"{path}: X has shape {X.shape} and type {X.dtype}, expected numbers of shape (n, d)")
    with np.errstate(over="ignore"):  # beyond float32: refused below
        X = np.array(X, dtype=np.float32, order="C")  # the array that was read is read-only
    if not np.isfinite(X).all():
        raise DataError(f"{path}: X has entries that are NaN, infinite or too large for float32")
    return X


def _labels(path: Path, y: NDArray[Any], names: NDArray[Any] | None) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    whole = y.dtype.kind == "f" and bool(np.all((y == np.rint(y)) & (np.abs(y) < 2.0**53)))
    if y.dtype.kind not in "iuUS" and not whole:
        raise DataError(f"{path}: y has type {y.dtype}, expected whole numbers or strings")
    if names is None:
        classes, labels = np.unique(y if y.dtype.kind in "US" else y.astype(np.int64), return_inverse=True)
        return labels.astype(np.int64), tuple(_text(c) for c in classes)
    if names.ndim != 1:
        raise DataError(f"{path}: names has shape {names.shape}, expected one name for each class")
    if y.dtype.kind in "US":
        raise DataError(f"{path}: y holds strings although there are names; expected indices into names")
    return y.astype(np.int64), tuple(_text(c) for c in names)


def _parts(path: Path, split: NDArray[Any] | None, n: int) -> NDArray[np.str_] | None:
    """What the file's split says of each row; None if it marks no row "test"."""
    if split is None:
        return None
    if split.shape != (n,) or split.dtype.kind not in "US":
        raise DataError(f"{path}: split has shape {split.shape} and type {split.dtype}, expected {n} strings")
    parts = split.astype(str)
    return parts if (parts == "test").any() else None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
