"""Data sets by name: features, labels, the canonical test part, and where everything comes from.

>>> from hashlearn.experiments import datasets
>>> datasets.load("digits")
<DataSet digits: 1,797 × 64 pixels, 10 classes>

Files are looked for in ``$HASHLEARN_DATA``, else in the user's cache folder. Missing files are downloaded, and every
file is verified when it is read. Adding a data set is its file and one line in `DATASETS`.

Any ``.npz`` with X and y is a data set too: one in the data folder by its stem, any other by its path. Its keys are
``X`` (n, d) numbers; ``y`` (n,) whole numbers or strings; optional ``names``, one for each class, which makes y indices
into it; optional ``split`` (n,) strings, of which "test" marks the canonical queries. Nothing is unpickled. Rows are
sorted so that queries come last, as in all data sets.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.names import did_you_mean
from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.cifar10 import Cifar10
from hashlearn.experiments.datasets.dataset import (
    DataError,
    DataSet,
    Known,
    MissingDataError,
    Provenance,
    Source,
    SourceFile,
)
from hashlearn.experiments.datasets.features import AlexNetFC7, Gist, Hog, ImageFeatures
from hashlearn.experiments.datasets.files import data_folder, expanded, provenance_of
from hashlearn.experiments.datasets.images import Digits, ImageSource
from hashlearn.experiments.datasets.mnist import Mnist
from hashlearn.experiments.datasets.sun397 import Sun397

__all__ = [
    "DATASETS",
    "AlexNetFC7",
    "DataError",
    "DataSet",
    "Gist",
    "Hog",
    "ImageFeatures",
    "Known",
    "MissingDataError",
    "Provenance",
    "SourceFile",
    "data_folder",
    "known",
    "load",
]
DATASETS: dict[str, Source] = {source.name: source for source in (Mnist(), Cifar10(), Sun397(), Digits())}
GIVEN = "given"
LICENCE = "whatever its maker says"
KEYS = ("X", "y", "names", "split")


def load(
    name: str | os.PathLike[str],
    features: str | ImageFeatures | None = None,
    progress: ProgressCallback | None = None,
) -> DataSet:
    """A data set by its name.

    Parameters
    ----------
    name : one of `DATASETS`, the stem of an ``.npz`` in the data folder, or the path to an ``.npz``
    features : one of the names that the data set offers, or an object such as ``Hog(orientations=9)`` if there are
        images; None means the data set's default
    progress : called with a `hashlearn.core.progress.Progress` while files are downloaded and features computed
    """
    text = os.fspath(name)
    source = DATASETS.get(text)
    if source is None:
        path = _npz_path(text)
        if features not in (None, GIVEN):
            raise ValueError(f"features of {path.name} must be {GIVEN!r} or None, got {features!r}")
        return read_npz(path)
    return source.read(data_folder(), _chosen(source, features), progress)


def known() -> list[Known]:
    """Every data set: what it offers, where it comes from, and what of it is missing in the data folder."""
    folder = data_folder()
    found = [
        Known(s.name, s.features, s.samples, s.home, s.licence, s.how, folder, tuple(s.missing(folder)))
        for s in DATASETS.values()
    ]
    for stem, path in _npz_files(folder).items():
        samples = count_samples(path)
        how = "a file of yours" if samples is not None else "a file that cannot be read"
        found.append(Known(stem, (GIVEN,), samples, f"the file {path.name}", LICENCE, how, folder, ()))
    return found


def _chosen(source: Source, features: str | ImageFeatures | None) -> str | ImageFeatures:
    if features is None:
        return source.features[0]
    takes_objects = isinstance(source, ImageSource)
    if features in source.features or (takes_objects and isinstance(features, ImageFeatures)):
        return features
    offered = ", ".join(source.features)
    if isinstance(features, str):
        hint = did_you_mean(features, source.features) or "."
        raise ValueError(f"features of {source.name} must be one of {offered}, got {features!r}{hint}")
    also = ", or an object such as Gist()" if takes_objects else ""
    raise TypeError(f"features of {source.name} must be one of {offered}{also}, got {features!r}")


def _npz_path(name: str) -> Path:
    if name.endswith(".npz") or Path(name).name != name:
        if not name.endswith(".npz"):
            raise ValueError(f"name must be a data set or the path to an .npz, got {name!r}")
        for path in (expanded(name), data_folder() / name):
            if path.is_file():
                return path
        raise MissingDataError(f"{name}: no such file, neither here nor in {data_folder()}")
    files = _npz_files(data_folder())
    if name in files:
        return files[name]
    names = [*DATASETS, *files]
    raise ValueError(
        f"unknown data set {name!r}{did_you_mean(name, names) or '.'} "
        f"Known: {', '.join(names)}, or the path to an .npz with X and y"
    )


def _npz_files(folder: Path) -> dict[str, Path]:
    """Stem → file, for every .npz in the data folder whose stem is not a data set's name."""
    return {path.stem: path for path in sorted(folder.glob("*.npz")) if path.stem not in DATASETS and path.is_file()}


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
    provenance = Provenance(f"the file {path.name}", LICENCE, files, {"name": GIVEN})
    return DataSet(path.stem, GIVEN, X, labels, class_names, is_query, None, provenance)


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
