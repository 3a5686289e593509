"""CIFAR-10: 50,000 + 10,000 color images of 32 × 32 pixels in ten classes, as six binary files.

The files are in ``cifar-10-batches-bin``. Missing ones are unpacked from the canonical archive, which is downloaded if
it is not in the data folder. An image is a label byte and 3,072 bytes: red, green, blue, 32 × 32 each.
"""

from __future__ import annotations

import tarfile
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import write_atomically
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments.datasets.dataset import DataError, MissingDataError
from hashlearn.experiments.datasets.files import CanonicalFile, absent, obtain
from hashlearn.experiments.datasets.images import ImageSource, LabeledImages

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE = 32
BYTES_PER_IMAGE = 1 + 3 * SIDE * SIDE

ARCHIVE = CanonicalFile(
    "cifar-10-binary.tar.gz",
    170_052_171,
    "md5:c32a1d4ab5d03f1284b67883e8d87530",  # as on its web page
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
)


def _file(name: str, sha256: str) -> CanonicalFile:
    return CanonicalFile(f"cifar-10-batches-bin/{name}", 30_730_000, f"sha256:{sha256}")


# The training batches in order, then the test batch.
FILES = (
    _file("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
    _file("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
    _file("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
    _file("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
    _file("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
    _file("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
)


class Cifar10(ImageSource):
    """The six files of CIFAR-10, or the archive that holds them."""

    name = "cifar10"
    features = ("gist", "hog", "pixels")
    samples = 60_000
    home = "https://www.cs.toronto.edu/~kriz/cifar.html"
    licence = "no formal licence; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)"
    how = "downloaded on first use (170 MB)"

    def missing(self, folder: Path) -> list[str]:
        if (folder / ARCHIVE.path).is_file():
            return []
        return [file.path for file in absent(FILES, folder)]

    def images(self, folder: Path, progress: ProgressCallback | None) -> LabeledImages:
        if absent(FILES, folder):
            _unpack(folder, progress)
        files = obtain(self.name, FILES, folder)
        images, labels = zip(*(_batch(folder / file.path) for file in FILES), strict=True)
        return LabeledImages(np.concatenate(images), np.concatenate(labels), CLASSES, len(labels[-1]), files)


def _batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = np.fromfile(path, np.uint8)
    if len(content) == 0 or len(content) % BYTES_PER_IMAGE:
        raise DataError(f"{path}: {len(content):,} bytes are not a whole number of images of {BYTES_PER_IMAGE} bytes")
    rows = content.reshape(-1, BYTES_PER_IMAGE)
    images = rows[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), rows[:, 0].astype(np.int64)


def _unpack(folder: Path, progress: ProgressCallback | None) -> None:
    """Unpack the missing files, and nothing else. An archive downloaded for this purpose is removed afterwards."""
    archive = folder / ARCHIVE.path
    downloaded = not archive.is_file()
    try:
        obtain(Cifar10.name, [ARCHIVE], folder, progress)
    except MissingDataError as error:
        batches = "\n".join(f"  {file.describe(folder)}" for file in absent(FILES, folder))
        raise MissingDataError(f"{error}\nIts unpacked files will do as well:\n{batches}") from None
    try:
        with tarfile.open(archive, "r:gz") as tar:
            wanted = absent(FILES, folder)
            for done, file in enumerate(wanted):
                tell(progress, f"unpacking {ARCHIVE.path}", done, len(wanted))
                member = tar.extractfile(file.path)
                if member is None:
                    raise DataError(f"{archive}: {file.path} is not a file in it")
                (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / file.path, iter(partial(member.read, 1 << 20), b""))
    except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
        raise DataError(f"{archive}: cannot be unpacked: {error}") from None
    if downloaded:
        archive.unlink()
