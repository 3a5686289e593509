"""Open a file only if it is a regular one: a read from a pipe or a device could wait forever."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link that leads to itself",
}


def kind_of(mode: int) -> str:
    """What is at a path that holds no regular file, in words; ``mode`` is its ``st_mode``.

    >>> kind_of(stat.S_IFIFO), kind_of(stat.S_IFCHR)
    ('a pipe', 'a device')
    """
    return KINDS.get(stat.S_IFMT(mode), "a device")


@contextmanager
def regular_file(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """The file, open for reading, and its size; ValueError for a pipe, a device or a folder."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise ValueError(f"it is not a regular file but {kind_of(status.st_mode)}")
    with open(handle, "rb") as file:
        yield file, status.st_size
