"""One kind of definition for all data sets: what is offered, what it needs, how to read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataSet
from hashlearn.experiments.datasets.features import ImageFeatures


@dataclass(frozen=True)
class Source:
    """A data set's definition.

    Attributes
    ----------
    name : what `load` is called with
    features : names of the features offered, default first
    samples : how many there are; None if that depends on the files
    home : where it comes from
    licence : in words
    how : how to get it, in a sentence
    missing : data folder → what is not there, as paths relative to it
    read : (data folder, features, progress) → the data set
    """

    name: str
    features: tuple[str, ...]
    samples: int | None
    home: str
    licence: str
    how: str
    missing: Callable[[Path], list[str]]
    read: Callable[[Path, str | ImageFeatures, ProgressCallback | None], DataSet]


@dataclass(frozen=True)
class Known:
    """A line of ``hashlearn datasets``.

    Attributes
    ----------
    name, features, samples, home, licence, how : as the data set's definition has them
    folder : where its files are looked for
    missing : those that are not there, as paths relative to the folder
    """

    name: str
    features: tuple[str, ...]
    samples: int | None
    home: str
    licence: str
    how: str
    folder: Path
    missing: tuple[str, ...]

    @property
    def present(self) -> bool:
        """Whether it loads without a download."""
        return not self.missing
