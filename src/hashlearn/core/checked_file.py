"""What checksummed files need: arrays as bytes, a hash of bytes while they are written, and complete reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The bytes of an array in row-major order; a view if the array is contiguous.

    >>> bytes_of(np.array([[1, 2], [3, 4]], np.uint8)).tolist()
    [1, 2, 3, 4]
    """
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


class Hashed:
    """Counts and hashes bytes on their way into a file.

    >>> written = Hashed()
    >>> b"".join(written.watched([b"ab", b"c"])), written.bytes
    (b'abc', 3)
    """

    def __init__(self) -> None:
        self.bytes, self.digest = 0, hashlib.sha256()

    def watched(self, parts: Iterable[Any]) -> Iterator[Any]:
        """The same parts."""
        for part in parts:
            self.digest.update(part)
            self.bytes += memoryview(part).nbytes
            yield part


def read_into(file: Any, block: memoryview) -> None:
    """Fill ``block`` from a file; a ValueError if the file ends too early."""
    while len(block):
        count = file.readinto(block)
        if not count:
            raise ValueError("truncated: the file ends too early")
        block = block[count:]
