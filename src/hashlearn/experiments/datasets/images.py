"""Data sets of images: pixels as they are, or features computed once and cached; and the digits, as the smallest one.

The digits are scikit-learn's 1,797 handwritten digits of 8 × 8 gray levels: no download, no canonical test part.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataSet, Provenance, Source, SourceFile
from hashlearn.experiments.datasets.features import IMAGE_FEATURES, ImageFeatures, cached, parameters
from hashlearn.experiments.datasets.files import provenance_of

PIXELS = "pixels"
BRIGHTEST = 16


@dataclass(frozen=True, eq=False)
class LabeledImages:
    """The content of an image data set's files. The last ``n_test`` images are the canonical test part, if any."""

    images: NDArray[np.uint8]
    y: NDArray[np.int64]
    class_names: tuple[str, ...]
    n_test: int
    files: tuple[SourceFile, ...]


class ImageSource(Source):
    """A data set of images, from which any image features can be computed."""

    @abstractmethod
    def images(self, folder: Path, progress: ProgressCallback | None) -> LabeledImages:
        """Images and labels, downloaded if necessary."""

    def read(self, folder: Path, features: str | ImageFeatures, progress: ProgressCallback | None) -> DataSet:
        """The data set with these features. "pixels" are gray levels or colors from 0 to 1, row by row."""
        found = self.images(folder, progress)
        n = len(found.images)
        described: dict[str, Any]
        if features == PIXELS:
            X = (found.images.reshape(n, -1) / np.float32(255.0)).astype(np.float32, copy=False)
            described = {"name": PIXELS, "scale": "0 to 1"}
        else:
            chosen = IMAGE_FEATURES[features]() if isinstance(features, str) else features
            described = parameters(chosen)
            shape = (n, chosen.n_features)
            X = cached(self.name, described, found.files, shape, folder, lambda: chosen.compute(found.images, progress))
        is_query = np.arange(n) >= n - found.n_test if found.n_test else None
        provenance = Provenance(self.home, self.licence, found.files, described)
        return DataSet(self.name, described["name"], X, found.y, found.class_names, is_query, found.images, provenance)


class Digits(ImageSource):
    """The digits that come with scikit-learn. Gray levels 0 … 16 become 0 … 255."""

    name = "digits"
    features = ("pixels",)
    samples = 1_797
    home = "https://archive.ics.uci.edu/dataset/80"
    licence = "CC BY 4.0; the test part of Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (1998)"
    how = "comes with scikit-learn"

    def missing(self, folder: Path) -> list[str]:
        return []

    def images(self, folder: Path, progress: ProgressCallback | None) -> LabeledImages:
        import sklearn.datasets

        bunch = sklearn.datasets.load_digits()
        file = Path(sklearn.datasets.__file__).parent / "data" / "digits.csv.gz"
        return LabeledImages(
            np.rint(bunch.images * (255.0 / BRIGHTEST)).astype(np.uint8),
            bunch.target.astype(np.int64),
            tuple(str(name) for name in bunch.target_names),
            0,
            (provenance_of(file, "sklearn/datasets/data/digits.csv.gz"),) if file.is_file() else (),
        )
