"""MNIST: 60,000 + 10,000 handwritten digits of 28 × 28 grey levels, as four gzipped IDX files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataError, DataSet
from hashlearn.experiments.datasets.features import ImageFeatures
from hashlearn.experiments.datasets.files import CanonicalFile, absent, obtain
from hashlearn.experiments.datasets.idx import read_idx
from hashlearn.experiments.datasets.images import LabelledImages, queries_last, with_features
from hashlearn.experiments.datasets.source import Source

NAME = "mnist"
HOME = "http://yann.lecun.com/exdb/mnist/"
LICENCE = "no formal licence; cite LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE 86 (1998)"
# The home has been refusing automated downloads; the two copies below are kept by PyTorch and by the CVD Foundation.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    HOME,
)


def _file(name: str, size: int, sha256: str) -> CanonicalFile:
    return CanonicalFile(f"mnist/{name}", size, f"sha256:{sha256}", tuple(mirror + name for mirror in MIRRORS))


# Training images, training labels, test images, test labels.
FILES = (
    _file("train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    _file("train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    _file("t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    _file("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)


def read(folder: Path, features: str | ImageFeatures, progress: ProgressCallback | None = None) -> DataSet:
    """The data set, downloaded first where it has to be."""
    files = obtain(NAME, FILES, folder, progress)
    train, train_labels, test, test_labels = (
        read_idx(folder / file.path, 3 if "images" in file.path else 1) for file in FILES
    )
    for what, images, labels in (("training", train, train_labels), ("test", test, test_labels)):
        if len(images) != len(labels):
            raise DataError(f"{NAME}: {len(images):,} {what} images, but {len(labels):,} labels")
    labelled = LabelledImages(
        np.concatenate([train, test]),
        np.concatenate([train_labels, test_labels]).astype(np.int64),
        tuple(str(digit) for digit in range(10)),
        queries_last(len(train), len(test)),
        files,
    )
    return with_features(NAME, labelled, features, folder, HOME, LICENCE, progress)


MNIST = Source(
    name=NAME,
    features=("pixels",),
    samples=70_000,
    home=HOME,
    licence=LICENCE,
    how="downloaded on first use (12 MB)",
    missing=lambda folder: [file.path for file in absent(FILES, folder)],
    read=read,
)
