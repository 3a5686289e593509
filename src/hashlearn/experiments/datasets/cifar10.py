"""CIFAR-10: 50,000 + 10,000 colour images of 32 × 32 pixels in ten classes, as six binary files.

The files lie in ``cifar-10-batches-bin``; those that are missing are taken out of the canonical archive, which is
downloaded if it is not in the data folder. An image is a label byte and 3,072 bytes: red, green, blue, 32 × 32 each.
"""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments.datasets.dataset import DataError, DataSet, MissingDataError
from hashlearn.experiments.datasets.features import ImageFeatures
from hashlearn.experiments.datasets.files import CanonicalFile, absent, obtain
from hashlearn.experiments.datasets.folder import written_whole
from hashlearn.experiments.datasets.images import LabelledImages, queries_last, with_features
from hashlearn.experiments.datasets.source import Source

NAME = "cifar10"
HOME = "https://www.cs.toronto.edu/~kriz/cifar.html"
LICENCE = "no formal licence; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images (2009)"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SIDE = 32
BYTES_PER_IMAGE = 1 + 3 * SIDE * SIDE

ARCHIVE = CanonicalFile(
    "cifar-10-binary.tar.gz",
    170_052_171,
    "md5:c32a1d4ab5d03f1284b67883e8d87530",  # as on its home page
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


def read(folder: Path, features: str | ImageFeatures, progress: ProgressCallback | None = None) -> DataSet:
    """The data set, downloaded and unpacked first where it has to be."""
    if absent(FILES, folder):
        _unpack(folder, progress)
    files = obtain(NAME, FILES, folder)
    batches = [_batch(folder / file.path) for file in FILES]
    n_test = len(batches[-1][0])
    images = np.concatenate([batch[0] for batch in batches])
    labelled = LabelledImages(
        images,
        np.concatenate([batch[1] for batch in batches]),
        CLASSES,
        queries_last(len(images) - n_test, n_test),
        files,
    )
    return with_features(NAME, labelled, features, folder, HOME, LICENCE, progress)


def _batch(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = np.fromfile(path, np.uint8)
    if len(content) == 0 or len(content) % BYTES_PER_IMAGE:
        raise DataError(f"{path}: {len(content):,} bytes are not a whole number of images of {BYTES_PER_IMAGE} bytes")
    rows = content.reshape(-1, BYTES_PER_IMAGE)
    images = rows[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), rows[:, 0].astype(np.int64)


def _unpack(folder: Path, progress: ProgressCallback | None) -> None:
    """Take what is missing, and nothing else, out of the archive; one that was downloaded for this is then removed."""
    archive = folder / ARCHIVE.path
    ours = not archive.is_file()
    try:
        obtain(NAME, [ARCHIVE], folder, progress)
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
                with written_whole(folder / file.path) as target:
                    while block := member.read(1 << 20):
                        target.write(block)
    except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
        raise DataError(f"{archive}: cannot be unpacked: {error}") from None
    if ours:
        archive.unlink()


def _missing(folder: Path) -> list[str]:
    if (folder / ARCHIVE.path).is_file():
        return []
    return [file.path for file in absent(FILES, folder)]


CIFAR10 = Source(
    name=NAME,
    features=("gist", "hog", "pixels"),
    samples=60_000,
    home=HOME,
    licence=LICENCE,
    how="downloaded on first use (170 MB)",
    missing=_missing,
    read=read,
)
