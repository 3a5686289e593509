"""Any ``.npz`` with X and y is a data set: one in the data folder by its stem, any other by its path.

Keys: ``X`` (n, d) numbers; ``y`` (n,) whole numbers or strings; optional ``names``, one for each class, which then
makes y indices into it; optional ``split`` (n,) strings, of which "test" marks the canonical queries. Nothing is
unpickled. Rows are put in order, queries last, as in all data sets.
"""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.experiments.datasets.dataset import DataError, DataSet, Provenance
from hashlearn.experiments.datasets.files import seen

FEATURES = "given"
KEYS = ("X", "y", "names", "split")
BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    MemoryError,  # a header that claims more than there is
    NotImplementedError,  # an unknown way of packing
    OSError,  # no permission, or a place outside the file
    RuntimeError,  # encrypted
    TypeError,
    ValueError,
    tokenize.TokenError,  # in an array's header
)
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes


def read_npz(path: Path, name: str | None = None) -> DataSet:
    """The data set in a file."""
    arrays = _arrays(path)
    X, y = _samples(path, arrays["X"]), arrays["y"]
    if y.ndim != 1 or len(y) != len(X):
        raise DataError(f"{path}: y has shape {y.shape}, expected ({len(X)},) to go with X of shape {X.shape}")
    labels, class_names = _labels(path, y, arrays.get("names"))
    is_query = _queries(path, arrays.get("split"), len(X))
    if is_query is not None:
        order = np.argsort(is_query, kind="stable")
        X, labels, is_query = X[order], labels[order], is_query[order]
    stem = name or path.stem
    provenance = Provenance(
        f"the file {path.name}", "whatever its maker says", (seen(path, path.name),), {"name": FEATURES}
    )
    return DataSet(stem, FEATURES, X, labels, class_names, is_query, None, provenance)


def count_samples(path: Path) -> int | None:
    """Number of samples; None if the file cannot be read."""
    try:
        return len(_arrays(path, ("y",))["y"])
    except (DataError, TypeError):
        return None


def _arrays(path: Path, keys: tuple[str, ...] = KEYS) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise DataError(f"{path}: a single array, expected an .npz with X and y")
            absent = [key for key in ("X", "y") if key not in file.files]
            if absent:
                raise DataError(f"{path}: has no {' and no '.join(absent)}, only {', '.join(file.files) or 'nothing'}")
            members = [] if file.zip is None else file.zip.infolist()
            if any(member.compress_type not in PACKINGS for member in members):
                raise DataError(f"{path}: is packed in another way than NumPy packs; save it with np.savez again")
            arrays = {key: file[key] for key in keys if key in file.files}
            if any(isinstance(array, bytes) for array in arrays.values()):  # what NumPy makes of other members
                raise DataError(f"{path}: has members that are no arrays")
            return arrays
    except DataError:
        raise
    except BROKEN as error:
        raise DataError(f"{path}: cannot be read as .npz without pickles: {' '.join(str(error).split())}") from None


def _samples(path: Path, X: NDArray[Any]) -> NDArray[np.float32]:
    if X.ndim != 2 or X.shape[1] == 0 or X.dtype.kind not in "fiub":
        raise DataError(f"{path}: X has shape {X.shape} and type {X.dtype}, expected numbers of shape (n, d)")
    with np.errstate(over="ignore"):  # beyond float32: refused below
        X = np.ascontiguousarray(X, dtype=np.float32)
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
