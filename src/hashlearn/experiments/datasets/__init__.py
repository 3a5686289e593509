"""Data sets through one door: features, labels, the canonical test part, and where everything comes from.

>>> from hashlearn.experiments import datasets
>>> datasets.load("digits")
<DataSet digits: 1,797 × 64 pixels, 10 classes>

Files are looked for in ``$HASHLEARN_DATA``, else in the user's cache folder. What is missing is downloaded from its
canonical home; whatever is read is verified. Adding a data set is its file and one line in `DATASETS`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hashlearn.core.names import did_you_mean
from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.cifar10 import CIFAR10
from hashlearn.experiments.datasets.dataset import (
    DataError,
    DataSet,
    MissingDataError,
    Provenance,
    SourceFile,
)
from hashlearn.experiments.datasets.digits import DIGITS
from hashlearn.experiments.datasets.features import AlexNetFC7, Gist, Hog, ImageFeatures
from hashlearn.experiments.datasets.folder import at_home, data_folder
from hashlearn.experiments.datasets.mnist import MNIST
from hashlearn.experiments.datasets.npz import FEATURES as GIVEN
from hashlearn.experiments.datasets.npz import count_samples, read_npz
from hashlearn.experiments.datasets.source import Known, Source
from hashlearn.experiments.datasets.sun397 import SUN397

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

DATASETS: dict[str, Source] = {source.name: source for source in (MNIST, CIFAR10, SUN397, DIGITS)}


def load(
    name: str | os.PathLike[str],
    features: str | ImageFeatures | None = None,
    progress: ProgressCallback | None = None,
) -> DataSet:
    """A data set by its name.

    Parameters
    ----------
    name : one of `DATASETS`, the stem of an ``.npz`` in the data folder, or the path to an ``.npz``
    features : one of the names that the data set offers, or an object such as ``Hog(orientations=9)`` where there
        are images; None is the data set's default
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
        found.append(
            Known(stem, (GIVEN,), samples, f"the file {path.name}", "whatever its maker says", how, folder, ())
        )
    return found


def _chosen(source: Source, features: str | ImageFeatures | None) -> str | ImageFeatures:
    if features is None:
        return source.features[0]
    if isinstance(features, str):
        if features not in source.features:
            offered = ", ".join(source.features)
            hint = _suggestion(features, source.features)
            raise ValueError(f"features of {source.name} must be one of {offered}, got {features!r}{hint}")
        return features
    if source is SUN397 or not isinstance(features, ImageFeatures):
        also = "" if source is SUN397 else ", or an object such as Gist()"
        raise TypeError(
            f"features of {source.name} must be one of {', '.join(source.features)}{also}, got {features!r}"
        )
    return features


def _npz_path(name: str) -> Path:
    if name.endswith(".npz") or Path(name).name != name:
        if not name.endswith(".npz"):
            raise ValueError(f"name must be a data set or the path to an .npz, got {name!r}")
        places = [at_home(name), data_folder() / name]
        for path in places:
            if path.is_file():
                return path
        raise MissingDataError(f"{name}: no such file, neither here nor in {data_folder()}")
    files = _npz_files(data_folder())
    if name in files:
        return files[name]
    names = [*DATASETS, *files]
    raise ValueError(
        f"unknown data set {name!r}{_suggestion(name, names)} "
        f"Known: {', '.join(names)}, or the path to an .npz with X and y"
    )


def _npz_files(folder: Path) -> dict[str, Path]:
    """Stem → file, for every .npz in the data folder that does not go by a data set's name."""
    return {path.stem: path for path in sorted(folder.glob("*.npz")) if path.stem not in DATASETS and path.is_file()}


def _suggestion(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name, names) or "."
