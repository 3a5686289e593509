"""Data sets by name: features, labels, the canonical test part, and where everything comes from.

>>> from hashlearn.experiments import datasets
>>> datasets.load("digits")
<DataSet digits: 1,797 × 64 pixels, 10 classes>

Files are looked for in ``$HASHLEARN_DATA``, else in the user's cache folder. Missing files are downloaded, and every
file is verified when it is read. Adding a data set is its class and one line in `DATASETS`.

A file of yours is a data set too (`own_files`): an ``.npz`` in the data folder by its stem, any ``.npz``, ``.npy`` or
``.parquet`` by its path.
"""

from __future__ import annotations

import os
from pathlib import Path

from hashlearn.core.names import did_you_mean
from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import (
    DataError,
    DataSet,
    Known,
    MissingDataError,
    Provenance,
    Source,
    SourceFile,
)
from hashlearn.experiments.datasets.files import data_folder, expanded, provenance_of
from hashlearn.experiments.datasets.images import Cifar10, Digits, ImageSource, Mnist
from hashlearn.experiments.datasets.own_files import (
    GIVEN,
    LICENSE,
    SUFFIXES,
    file_has_labels,
    near_file,
    read_file,
)

__all__ = [
    "DATASETS",
    "DataError",
    "DataSet",
    "Known",
    "MissingDataError",
    "Provenance",
    "Source",
    "SourceFile",
    "data_folder",
    "known",
    "load",
    "source",
]
DATASETS: dict[str, ImageSource] = {source.name: source for source in (Mnist(), Cifar10(), Digits())}


def load(
    name: str | os.PathLike[str],
    features: str | None = None,
    progress: ProgressCallback | None = None,
) -> DataSet:
    """A data set by its name.

    Parameters
    ----------
    name : one of `DATASETS`, the stem of an ``.npz`` in the data folder, or the path to an ``.npz``, ``.npy`` or
        ``.parquet``
    features : one of the names that the data set offers; None means its default
    progress : called with a `hashlearn.core.progress.Progress` while files are downloaded and features computed
    """
    text = os.fspath(name)
    source = DATASETS.get(text)
    if source is None:
        path = _file_path(text)
        if features not in (None, GIVEN):
            raise ValueError(f"features of {path.name} must be {GIVEN!r} or None, got {features!r}")
        return read_file(path)
    return source.read(data_folder(), _chosen(source, features), progress)


def known() -> list[Known]:
    """Every data set: what it offers, where it comes from, and what of it is missing in the data folder."""
    folder = data_folder()
    found = [
        Known(s.name, s.features, s.samples, s.home, s.license, s.how, folder, tuple(s.missing(folder)))
        for s in DATASETS.values()
    ]
    return found + [
        Known(stem, (GIVEN,), None, f"the file {path.name}", LICENSE, "a file of yours", folder, ())
        for stem, path in _npz_files(folder).items()
    ]


def _chosen(source: ImageSource, features: str | None) -> str:
    if features is None:
        return source.features[0]
    if features in source.features:
        return features
    hint = did_you_mean(str(features), source.features) or "."
    raise ValueError(f"features of {source.name} must be one of {', '.join(source.features)}, got {features!r}{hint}")


def source(name: str | os.PathLike[str]) -> Source:
    """What is known of a data set before its rows are read. A file of somebody's own is read once, for its digest."""
    text = os.fspath(name)
    if text in DATASETS:
        return Source(text)
    try:
        path = _file_path(text)
        return Source(text, file_has_labels(path), provenance_of(path, path.name).sha256)
    except (OSError, ValueError, ImportError):
        return Source(text, sha256=None)  # `load` tells what is wrong


def _file_path(name: str) -> Path:
    if name.endswith(SUFFIXES) or Path(name).name != name:
        if not name.endswith(SUFFIXES):
            raise ValueError(f"name must be a data set or the path to an {', '.join(SUFFIXES)} file, got {name!r}")
        for path in (expanded(name), data_folder() / name):
            if path.is_file():
                return path
        raise MissingDataError(f"{name}: no such file, neither here nor in {data_folder()}")
    files = _npz_files(data_folder())
    if name in files:
        return files[name]
    names = [*DATASETS, *files]
    hint = near_file(name) or did_you_mean(name, names) or "."
    raise ValueError(
        f"unknown data set {name!r}{hint} Known: {', '.join(names)}, or the path to an {', '.join(SUFFIXES)} file"
    )


def _npz_files(folder: Path) -> dict[str, Path]:
    """Stem → file, for every .npz in the data folder whose stem is not a data set's name."""
    return {path.stem: path for path in sorted(folder.glob("*.npz")) if path.stem not in DATASETS and path.is_file()}
