"""Digits: scikit-learn's 1,797 handwritten digits of 8 × 8 gray levels. No download, no canonical test part."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.files import provenance_of
from hashlearn.experiments.datasets.images import ImageSource, LabeledImages

BRIGHTEST = 16


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
