"""What `load` returns (`DataSet`), and what `known` lists (`Known`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class DataError(ValueError):
    """A data file is missing, damaged or wrong. The message names the file and says what to do."""


class MissingDataError(DataError):
    """A data file is absent and could not be downloaded. The message says what to put where, with its checksum."""


@dataclass(frozen=True)
class SourceFile:
    """A file that was read. ``path`` is relative to the data folder."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Provenance:
    """The origin of the samples. ``dataclasses.asdict`` gives plain JSON.

    Attributes
    ----------
    source : the data set's web page
    license : its license, in words
    files : the files that were read
    features : name and parameters of the features computed from them
    """

    source: str
    license: str
    files: tuple[SourceFile, ...]
    features: dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Samples, with labels if there are any. Samples are rows; a canonical test part comes after the training part.

    Attributes
    ----------
    name : such as "mnist"
    features : "pixels", "gist", "hog" or "given"
    X : float32 (n_samples, n_features)
    y : int64 (n_samples,), indices into ``class_names``; zeros if there are no labels
    class_names : one name for each class; empty if there are no labels
    is_query : bool (n_samples,), the canonical test part; None if there is none, and queries have to be drawn
    images : uint8 (n, height, width) or (n, height, width, 3), for display; None if there are none
    provenance : source, license, files and parameters
    parts : str (n_samples,), what a file's split says of each row; None if it has none that marks a row "test"
    """

    name: str
    features: str
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    class_names: tuple[str, ...]
    is_query: NDArray[np.bool_] | None
    images: NDArray[np.uint8] | None
    provenance: Provenance
    parts: NDArray[np.str_] | None = None

    def __post_init__(self) -> None:
        n = len(self.y)
        if self.X.ndim != 2 or self.y.ndim != 1 or len(self.X) != n:
            raise DataError(f"{self.name}: X has shape {self.X.shape} and y {self.y.shape}; expected (n, d) and (n,)")
        if n == 0:
            raise DataError(f"{self.name}: there are no samples")
        if self.y.min() < 0 or self.y.max() >= max(1, len(self.class_names)):
            raise DataError(
                f"{self.name}: labels run from {self.y.min()} to {self.y.max()}, but there are "
                f"{len(self.class_names)} class names"
            )
        for what, part in (("is_query", self.is_query), ("images", self.images), ("parts", self.parts)):
            if part is not None and len(part) != n:
                raise DataError(f"{self.name}: {what} has length {len(part)}, but there are {n} samples")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        n, d = self.X.shape
        queries = "" if self.is_query is None else f", {int(self.is_query.sum()):,} of them canonical queries"
        labels = f"{self.n_classes} classes" if self.has_labels else "no labels"
        return f"<DataSet {self.name}: {n:,} × {d:,} {self.features}, {labels}{queries}>"

    @property
    def has_labels(self) -> bool:
        """Whether ``y`` means anything."""
        return bool(self.class_names)

    @property
    def n_classes(self) -> int:
        """The number of classes, with or without samples."""
        return len(self.class_names)


@dataclass(frozen=True)
class Source:
    """What is known of a data set before its rows are read.

    Attributes
    ----------
    name : what `hashlearn.experiments.datasets.load` takes
    has_labels : whether it has labels; a file that cannot be read counts as one with labels
    sha256 : of the file, if it is somebody's own; None if that cannot be read. Empty for published files, whose
        checksums stand in the code
    """

    name: str
    has_labels: bool = True
    sha256: str | None = ""


@dataclass(frozen=True)
class Known:
    """A line of ``hashlearn datasets``.

    Attributes
    ----------
    name, features, samples, home, license, how : see `hashlearn.experiments.datasets.images.ImageSource`
    folder : the data folder
    missing : the files that the folder lacks, as paths relative to it
    """

    name: str
    features: tuple[str, ...]
    samples: int | None
    home: str
    license: str
    how: str
    folder: Path
    missing: tuple[str, ...]

    @property
    def present(self) -> bool:
        """Whether it loads without a download."""
        return not self.missing
