"""Data sets of images: pixels as they are, or features computed once and cached.

Files are verified before they are read, so their layout needs no checks.
"""

from __future__ import annotations

import gzip
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataSet, Provenance, SourceFile
from hashlearn.experiments.datasets.features import IMAGE_FEATURES
from hashlearn.experiments.datasets.files import PublishedFile, absent, download, obtain, provenance_of
from hashlearn.experiments.datasets.image_features import cached

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


class ImageSource(ABC):
    """The definition of a data set of images, from which any image features can be computed.

    Attributes
    ----------
    name : what `load` is called with
    features : names of the features offered, default first
    samples : number of samples
    home : the data set's web page
    license : its license, in words
    how : how to get it, in a sentence
    """

    name: str
    features: tuple[str, ...]
    samples: int
    home: str
    license: str
    how: str

    @abstractmethod
    def missing(self, folder: Path) -> list[str]:
        """What the data folder lacks, as paths relative to it."""

    @abstractmethod
    def images(self, folder: Path, progress: ProgressCallback | None) -> LabeledImages:
        """Images and labels, downloaded if necessary."""

    def read(self, folder: Path, features: str, progress: ProgressCallback | None) -> DataSet:
        """The data set with these features. "pixels" are gray levels or colors from 0 to 1, row by row."""
        found = self.images(folder, progress)
        n = len(found.images)
        described: dict[str, Any]
        if features == PIXELS:
            X = (found.images.reshape(n, -1) / np.float32(255.0)).astype(np.float32, copy=False)
            described = {"name": PIXELS, "scale": "0 to 1"}
        else:
            compute, n_features, version = IMAGE_FEATURES[features]
            described = {"name": features, "version": version}
            X = cached(self.name, described, found.files, (n, n_features), lambda: compute(found.images, progress))
        is_query = np.arange(n) >= n - found.n_test if found.n_test else None
        provenance = Provenance(self.home, self.license, found.files, described)
        return DataSet(self.name, features, X, found.y, found.class_names, is_query, found.images, provenance)


class Digits(ImageSource):
    """The 1,797 digits that come with scikit-learn, without a canonical test part. Levels 0 … 16 become 0 … 255."""

    name = "digits"
    features = ("pixels",)
    samples = 1_797
    home = "https://archive.ics.uci.edu/dataset/80"
    license = "CC BY 4.0; the test part of Alpaydin and Kaynak, Optical Recognition of Handwritten Digits (1998)"
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


class Mnist(ImageSource):
    """60,000 + 10,000 handwritten digits of 28 × 28 gray levels, as four gzipped IDX files."""

    name = "mnist"
    features = ("pixels",)
    samples = 70_000
    home = "http://yann.lecun.com/exdb/mnist/"
    license = "no formal license; cite LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE 86 (1998)"
    how = "downloaded on first use (12 MB)"
    # The home page refuses automated downloads. The copies are hosted by PyTorch and by the CVD Foundation.
    mirrors = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")
    checksums = {  # noqa: RUF012 - training images, training labels, test images, test labels
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }

    def missing(self, folder: Path) -> list[str]:
        return [file.path for file in absent(self._files(), folder)]

    def images(self, folder: Path, progress: ProgressCallback | None) -> LabeledImages:
        files = obtain(self.name, self._files(), folder, progress)
        train, train_labels, test, test_labels = (self._entries(folder / file.path) for file in files)
        images = np.concatenate([train, test]).reshape(-1, 28, 28)
        y = np.concatenate([train_labels, test_labels]).astype(np.int64)
        return LabeledImages(images, y, tuple("0123456789"), len(test_labels), files)

    def _files(self) -> list[PublishedFile]:
        return [
            PublishedFile(f"mnist/{name}", f"sha256:{sha256}", tuple(mirror + name for mirror in self.mirrors))
            for name, sha256 in self.checksums.items()
        ]

    def _entries(self, path: Path) -> NDArray[np.uint8]:
        """The bytes after a header of four bytes and four for each dimension."""
        return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16 if "idx3" in path.name else 8)


class Cifar10(ImageSource):
    """50,000 + 10,000 color images of 32 × 32 pixels in ten classes, as six binary files or the archive of them.

    An image is a label byte and 3,072 bytes: red, green, blue, 32 × 32 each.
    """

    name = "cifar10"
    features = ("gist", "hog", "pixels")
    samples = 60_000
    home = "https://www.cs.toronto.edu/~kriz/cifar.html"
    license = "no formal license; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)"
    how = "downloaded on first use (170 MB)"
    archive = PublishedFile(
        "cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",  # as on its web page
        ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    )
    checksums = {  # noqa: RUF012 - the training batches in order, then the test batch
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    }
    classes = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

    def missing(self, folder: Path) -> list[str]:
        files = absent(self._files(), folder)
        return [file.path for file in files] if absent([self.archive], folder) else []

    def images(self, folder: Path, progress: ProgressCallback | None) -> LabeledImages:
        batches = self._files()
        if absent(batches, folder):
            untar = require("pooch", "data", "unpacking").Untar([file.path for file in batches], extract_dir=".")
            download(self.name, self.archive, folder, progress, untar)
        files = obtain(self.name, batches, folder)
        rows = [np.fromfile(folder / file.path, np.uint8).reshape(-1, 1 + 3 * 32 * 32) for file in files]
        images = np.concatenate(rows)[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        y = np.concatenate(rows)[:, 0].astype(np.int64)
        return LabeledImages(np.ascontiguousarray(images), y, self.classes, len(rows[-1]), files)

    def _files(self) -> list[PublishedFile]:
        return [
            PublishedFile(f"cifar-10-batches-bin/{name}", f"sha256:{sha256}") for name, sha256 in self.checksums.items()
        ]
