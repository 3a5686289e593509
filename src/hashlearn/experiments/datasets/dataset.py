"""What `load` returns: samples, labels, the canonical test part, and where everything comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Called with (what is going on, done, total) between steps.


class DataError(ValueError):
    """A data file that is missing, damaged, or not what it should be: which file, and what to do."""


class MissingDataError(DataError):
    """A data file that is not there and could not be downloaded: what to put where, with its checksum."""


@dataclass(frozen=True)
class SourceFile:
    """A file that was read; ``path`` is relative to the data folder."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True)
class Provenance:
    """Where samples come from. ``dataclasses.asdict`` gives plain JSON.

    Attributes
    ----------
    source : the data set's home
    licence : its licence, in words
    files : the files that were read
    features : the name and the parameters of what was computed from them
    """

    source: str
    licence: str
    files: tuple[SourceFile, ...]
    features: dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Samples with labels; samples are rows, training part first where there is a canonical test part.

    Attributes
    ----------
    name : such as "mnist"
    features : "pixels", "gist", "hog", "fc7" or "given"
    X : float32 (n_samples, n_features)
    y : int64 (n_samples,), indices into ``class_names``
    class_names : one for each class
    is_query : bool (n_samples,), the canonical test part; None where there is none and queries are to be drawn
    images : uint8 (n, height, width) or (n, height, width, 3), to look at; None where there are none
    provenance : source, licence, files and parameters
    """

    name: str
    features: str
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    class_names: tuple[str, ...]
    is_query: NDArray[np.bool_] | None
    images: NDArray[np.uint8] | None
    provenance: Provenance

    def __post_init__(self) -> None:
        n = len(self.y)
        if self.X.ndim != 2 or self.y.ndim != 1 or len(self.X) != n:
            raise DataError(f"{self.name}: X has shape {self.X.shape} and y {self.y.shape}; expected (n, d) and (n,)")
        if n == 0:
            raise DataError(f"{self.name}: there are no samples")
        if self.y.min() < 0 or self.y.max() >= len(self.class_names):
            raise DataError(
                f"{self.name}: labels run from {self.y.min()} to {self.y.max()}, but there are "
                f"{len(self.class_names)} class names"
            )
        for what, part in (("is_query", self.is_query), ("images", self.images)):
            if part is not None and len(part) != n:
                raise DataError(f"{self.name}: {what} has length {len(part)}, but there are {n} samples")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        n, d = self.X.shape
        queries = "" if self.is_query is None else f", {int(self.is_query.sum()):,} of them canonical queries"
        return f"<DataSet {self.name}: {n:,} × {d:,} {self.features}, {self.n_classes} classes{queries}>"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)
