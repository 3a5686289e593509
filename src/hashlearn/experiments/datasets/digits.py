"""Digits: scikit-learn's 1,797 handwritten digits of 8 × 8 grey levels; nothing to download, no canonical test part."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataSet
from hashlearn.experiments.datasets.features import ImageFeatures
from hashlearn.experiments.datasets.files import seen
from hashlearn.experiments.datasets.images import LabelledImages, with_features
from hashlearn.experiments.datasets.source import Source

NAME = "digits"
HOME = "https://archive.ics.uci.edu/dataset/80"
LICENCE = "CC BY 4.0; the test part of Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (1998)"
BRIGHTEST = 16


def read(folder: Path, features: str | ImageFeatures, progress: ProgressCallback | None = None) -> DataSet:
    """The data set, out of scikit-learn; grey levels 0 … 16 become 0 … 255."""
    import sklearn.datasets

    bunch = sklearn.datasets.load_digits()
    file = Path(sklearn.datasets.__file__).parent / "data" / "digits.csv.gz"
    labelled = LabelledImages(
        np.rint(bunch.images * (255.0 / BRIGHTEST)).astype(np.uint8),
        bunch.target.astype(np.int64),
        tuple(str(name) for name in bunch.target_names),
        None,
        (seen(file, "sklearn/datasets/data/digits.csv.gz"),) if file.is_file() else (),
    )
    return with_features(NAME, labelled, features, folder, HOME, LICENCE, progress)


DIGITS = Source(
    name=NAME,
    features=("pixels",),
    samples=1_797,
    home=HOME,
    licence=LICENCE,
    how="comes with scikit-learn",
    missing=lambda folder: [],
    read=read,
)
