"""Write a file completely or not at all; read only regular files, and completely.

A new file is written under a temporary name in the same folder, flushed to disk, checked and renamed. A read from a
pipe or a device could wait forever, so `regular_file` refuses them.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

UNFINISHED = ".unfinished"
LONGEST_NAME = 255 - 40  # bytes; the name of the unfinished file is longer
OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")  # names of files that a process has open


def output_place(path: str | os.PathLike[str]) -> Path:
    """The real path of an output file, with links followed. Raises an error if it cannot be a regular file.

    Devices, pipes, sockets and folders are refused, because the new file would replace them. Commands that compute for
    long call this first, and every writer calls it again.
    """
    place, name = Path(os.path.realpath(path)), os.fspath(path)
    is_special = os.path.lexists(place) and not os.path.isfile(place) and not os.path.isdir(place)
    if is_special or os.path.abspath(path).startswith(OPEN_FILES):
        raise FileExistsError(f"{name}: is not a regular file; name one")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{name}: its folder does not exist")
    if len(os.fsencode(place.name)) > LONGEST_NAME:
        raise ValueError(f"{name}: this name is too long; it must have at most {LONGEST_NAME} bytes")
    if place.is_dir():
        raise IsADirectoryError(f"{name}: is a folder; name a file in it")
    return place


@contextmanager
def replacing(path: Path, check: Callable[[Path], Any] | None = None) -> Iterator[Path]:
    """A new file to write to, which replaces ``path`` when the block ends without an error.

    After a kill at any moment, or on a full disk, ``path`` is the old file or the new one. ``check`` is called with the
    finished file before it replaces ``path``; if it raises, the old file stays. Of two writers the last one wins. A
    kill leaves the unfinished file, which can be removed.
    """
    place = output_place(path)  # a link stays a link
    unfinished = place.with_name(f".{place.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        yield unfinished
        with open(unfinished, "rb") as file:
            os.fsync(file.fileno())
        if check is not None:
            check(unfinished)
        with suppress(FileNotFoundError):
            os.chmod(unfinished, place.stat().st_mode & 0o777)
        os.replace(unfinished, place)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    with suppress(OSError, AttributeError):  # the new name survives a power cut too; some systems cannot do this
        folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_atomically(path: Path, parts: Iterable[Any], check: Callable[[Path], Any] | None = None) -> None:
    """Write ``parts`` one after another, all or nothing; ``check`` as in `replacing`."""
    with replacing(path, check) as unfinished, open(unfinished, "wb") as file:
        file.writelines(parts)


@contextmanager
def regular_file(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """The file, open for reading, and its size; ValueError for a pipe, a device or a folder."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise ValueError("it is not a regular file")
    with open(handle, "rb") as file:
        yield file, status.st_size


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The bytes of an array in row-major order; a view if the array is contiguous.

    >>> bytes_of(np.array([[1, 2], [3, 4]], np.uint8)).tolist()
    [1, 2, 3, 4]
    """
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
