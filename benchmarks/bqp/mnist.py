"""MNIST's training set from the canonical IDX files in ``$HASHLEARN_DATA/mnist``.

An IDX file is two zero bytes, a type code (8: unsigned byte), the number of dimensions, each dimension as a
big-endian 32-bit integer, and then the data.
"""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IMAGES = "train-images-idx3-ubyte.gz"
LABELS = "train-labels-idx1-ubyte.gz"
UNSIGNED_BYTE = 8


class DataMissing(RuntimeError):
    """A data file is not where it is looked for; the message says which file goes where."""


def data_file(*parts: str) -> Path:
    """The path of a file under ``$HASHLEARN_DATA``, which must exist."""
    relative = Path(*parts)
    folder = os.environ.get("HASHLEARN_DATA")
    if not folder:
        raise DataMissing(f"set HASHLEARN_DATA to the folder that holds {relative}; it is not set")
    path = Path(folder) / relative
    if not path.exists():
        raise DataMissing(f"{relative} is missing: put it at {path} (HASHLEARN_DATA is {folder})")
    return path


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in a gzipped IDX file of unsigned bytes."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != UNSIGNED_BYTE:
        raise ValueError(f"{path} is not an IDX file of unsigned bytes: it begins with {content[:4].hex(' ')}")
    header = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content[4:header], dtype=">i4").tolist())
    if len(content) != header + math.prod(shape):
        raise ValueError(f"{path} is damaged: {math.prod(shape)} bytes of data expected, {len(content) - header} found")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def training_set() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pixels (60000, 784) and labels (60000,)."""
    images = read_idx(data_file("mnist", IMAGES))
    return images.reshape(len(images), -1), read_idx(data_file("mnist", LABELS))
