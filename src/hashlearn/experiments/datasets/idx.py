"""The IDX format of MNIST, gzipped: two zero bytes, a type, the number of dimensions, the dimensions, the entries."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hashlearn.experiments.datasets.dataset import DataError

UNSIGNED_BYTE = 0x08
MAX_ENTRIES = 2**31  # beyond this a header is taken for damaged; nothing is allocated before the check


def read_idx(path: Path, n_dimensions: int) -> NDArray[np.uint8]:
    """The array of unsigned bytes in ``path``, which must have so many dimensions."""
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
        raise DataError(f"{path}: more entries than its header's shape {shape} has room for")
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
