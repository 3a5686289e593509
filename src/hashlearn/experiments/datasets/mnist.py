"""MNIST: 60,000 + 10,000 handwritten digits of 28 × 28 gray levels, as four gzipped IDX files.

An IDX file is two zero bytes, a type, the number of dimensions, the dimensions, and the entries.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataError
from hashlearn.experiments.datasets.files import CanonicalFile, absent, obtain
from hashlearn.experiments.datasets.images import ImageSource, LabeledImages

HOME = "http://yann.lecun.com/exdb/mnist/"
# The home page refuses automated downloads. The two copies are hosted by PyTorch and by the CVD Foundation.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    HOME,
)
UNSIGNED_BYTE = 0x08
MAX_ENTRIES = 2**31  # a header that claims more is damaged; nothing is allocated before this check


def _file(name: str, size: int, sha256: str) -> CanonicalFile:
    return CanonicalFile(f"mnist/{name}", size, f"sha256:{sha256}", tuple(mirror + name for mirror in MIRRORS))


# Training images, training labels, test images, test labels.
FILES = (
    _file("train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    _file("train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    _file("t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    _file("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)


class Mnist(ImageSource):
    """The four files of MNIST."""

    name = "mnist"
    features = ("pixels",)
    samples = 70_000
    home = HOME
    licence = "no formal licence; cite LeCun, Bottou, Bengio and Haffner, Proceedings of the IEEE 86 (1998)"
    how = "downloaded on first use (12 MB)"

    def missing(self, folder: Path) -> list[str]:
        return [file.path for file in absent(FILES, folder)]

    def images(self, folder: Path, progress: ProgressCallback | None) -> LabeledImages:
        files = obtain(self.name, FILES, folder, progress)
        train, train_labels, test, test_labels = (
            read_idx(folder / file.path, 3 if "images" in file.path else 1) for file in FILES
        )
        for what, images, labels in (("training", train, train_labels), ("test", test, test_labels)):
            if len(images) != len(labels):
                raise DataError(f"{self.name}: {len(images):,} {what} images, but {len(labels):,} labels")
        y = np.concatenate([train_labels, test_labels]).astype(np.int64)
        return LabeledImages(np.concatenate([train, test]), y, tuple("0123456789"), len(test), files)


def read_idx(path: Path, n_dimensions: int) -> NDArray[np.uint8]:
    """The array of unsigned bytes in a gzipped IDX file, which must have ``n_dimensions`` dimensions."""
    try:
        with gzip.open(path, "rb") as file:
            shape = _shape(file.read(4 + 4 * n_dimensions), path, n_dimensions)
            wanted = math.prod(shape)
            entries = file.read(wanted)
            more = file.read(1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file: {error}") from None
    if len(entries) < wanted:
        raise DataError(f"{path}: truncated: {len(entries):,} of {wanted:,} entries of shape {shape}")
    if more:
        raise DataError(f"{path}: more entries than its header's shape {shape} allows")
    return np.frombuffer(entries, np.uint8).reshape(shape)


def _shape(header: bytes, path: Path, n_dimensions: int) -> tuple[int, ...]:
    if len(header) < 4 + 4 * n_dimensions:
        raise DataError(f"{path}: truncated inside its IDX header ({len(header)} bytes)")
    magic = bytes([0, 0, UNSIGNED_BYTE, n_dimensions])
    if header[:4] != magic:
        raise DataError(
            f"{path}: bad IDX header: starts with bytes {header[:4].hex(' ')}, expected {magic.hex(' ')} "
            f"(unsigned bytes in {n_dimensions} dimension(s))"
        )
    shape = struct.unpack(f">{n_dimensions}I", header[4:])
    if math.prod(shape) > MAX_ENTRIES:
        raise DataError(f"{path}: bad IDX header: its shape {shape} has more than {MAX_ENTRIES:,} entries")
    return shape
