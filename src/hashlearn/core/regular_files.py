"""Opening a file that must be a regular one: a pipe or a device could keep the reader waiting for ever."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


@contextmanager
def regular_file(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """The file, open for reading, and its size; ValueError for a pipe, a device or a folder."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise ValueError(f"it is not a regular file but {KINDS.get(stat.S_IFMT(status.st_mode), 'a device')}")
    with open(handle, "rb") as file:
        yield file, status.st_size
