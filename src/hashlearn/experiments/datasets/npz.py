"""Any ``.npz`` with X and y is a data set: one in the data folder by its stem, any other by its path.

Keys: ``X`` (n, d) numbers; ``y`` (n,) whole numbers or strings; optional ``names``, one for each class, which makes y
indices into it; optional ``split`` (n,) strings, of which "test" marks the canonical queries. Nothing is unpickled.
Rows are sorted so that queries come last, as in all data sets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.experiments.datasets.dataset import DataError, DataSet, Provenance
from hashlearn.experiments.datasets.files import provenance_of

FEATURES = "given"
LICENCE = "whatever its maker says"
KEYS = ("X", "y", "names", "split")


def read_npz(path: Path) -> DataSet:
    """The data set in a file."""
    arrays = _arrays(path, KEYS)
    X, y = _samples(path, arrays.pop("X")), arrays["y"]
    if y.ndim != 1 or len(y) != len(X):
        raise DataError(f"{path}: y has shape {y.shape}, expected ({len(X)},) to go with X of shape {X.shape}")
    labels, class_names = _labels(path, y, arrays.get("names"))
    is_query = _queries(path, arrays.get("split"), len(X))
    if is_query is not None:
        order = np.argsort(is_query, kind="stable")
        X, labels, is_query = X[order], labels[order], is_query[order]
    files = (provenance_of(path, path.name),)
    provenance = Provenance(f"the file {path.name}", LICENCE, files, {"name": FEATURES})
    return DataSet(path.stem, FEATURES, X, labels, class_names, is_query, None, provenance)


def count_samples(path: Path) -> int | None:
    """Number of samples; None if the file cannot be read."""
    try:
        return len(_arrays(path, ("y",))["y"])
    except (DataError, TypeError):
        return None


def _arrays(path: Path, keys: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    from hashlearn.streams.numpy_files import npz_names, numpy_array  # here: listing data sets rarely needs it

    try:
        names = npz_names(path)
        absent = [key for key in ("X", "y") if key not in names]
        if absent:
            raise DataError(f"{path}: has no {' and no '.join(absent)}, only {', '.join(names) or 'nothing'}")
        return {key: numpy_array(path, key) for key in keys if key in names}
    except DataError:
        raise
    except (OSError, ValueError) as error:
        text = str(error)
        raise DataError(text if text.startswith(str(path)) else f"{path}: {text}") from None


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


def _queries(path: Path, split: NDArray[Any] | None, n: int) -> NDArray[np.bool_] | None:
    if split is None:
        return None
    if split.shape != (n,) or split.dtype.kind not in "US":
        raise DataError(f"{path}: split has shape {split.shape} and type {split.dtype}, expected {n} strings")
    is_query = split.astype(str) == "test"
    return is_query if is_query.any() else None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
