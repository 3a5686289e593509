"""Files that are written whole or not at all: beside their place, flushed to disk, checked, then renamed into it."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNFINISHED = ".unfinished"
STALE_SECONDS = 3600.0


@contextmanager
def replacing(path: Path, check: Callable[[Path], Any] | None = None) -> Iterator[Path]:
    """A path beside ``path`` to write to, which takes its place when the block ends without an error.

    A kill at any moment, or a full disk, leaves the old file or the new one. ``check`` sees the finished file before it
    takes its place; what it raises keeps the old one.
    """
    place = Path(os.path.realpath(path))  # a link stays a link
    if not place.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(place.parent)!r} to write {place.name!r} into")
    if place.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it")
    _remove_stale(place)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        yield beside
        with open(beside, "rb") as file:
            os.fsync(file.fileno())
        if check is not None:
            check(beside)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(beside, place.stat().st_mode & 0o777)
        os.replace(beside, place)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    _sync_folder(place.parent)


def write_atomically(path: Path, parts: Iterable[Any], check: Callable[[Path], Any] | None = None) -> None:
    """Write ``parts`` one after another, whole or not at all; ``check`` as in `replacing`."""
    with replacing(path, check) as beside, open(beside, "xb", buffering=0) as file:
        for part in parts:
            _write_all(file, memoryview(part))


def remove_unfinished(folder: Path, pattern: str) -> None:
    """Remove what kills have left half-written, if it is an hour old: nobody is still writing it then."""
    for left in folder.glob(pattern + UNFINISHED):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_SECONDS:
                left.unlink()


def _write_all(file: Any, data: memoryview) -> None:
    while len(data):
        data = data[file.write(data) :]


def _sync_folder(folder: Path) -> None:
    """So that the new name, too, survives a power cut; not every system can."""
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove_stale(place: Path) -> None:
    """What earlier writers of this very file have left."""
    with contextlib.suppress(OSError):
        remove_unfinished(place.parent, f".{glob.escape(place.name)}.*")
