"""Files that are written whole or not at all: beside their place, flushed to disk, checked, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

UNFINISHED = ".unfinished"
STALE_SECONDS = 3600.0


def write_atomically(path: Path, parts: Iterable[Any], check: Callable[[Path], Any] | None = None) -> None:
    """Write ``parts`` one after another. A kill at any moment, or a full disk, leaves the old file or the new one.

    ``check`` sees the finished file before it takes its place; what it raises keeps the old one.
    """
    place = Path(os.path.realpath(path))  # a link stays a link
    if not place.parent.is_dir():
        raise FileNotFoundError(f"no folder {str(place.parent)!r} to write {place.name!r} into")
    if place.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it")
    _remove_stale(place)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}{UNFINISHED}")
    try:
        with open(beside, "xb", buffering=0) as file:
            for part in parts:
                _write_all(file, memoryview(part))
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
    """What kills have left half-written an hour ago: nobody is still writing it."""
    with contextlib.suppress(OSError):
        for name in os.listdir(place.parent):
            if name.startswith(f".{place.name}.") and name.endswith(UNFINISHED):
                left = place.with_name(name)
                with contextlib.suppress(OSError):
                    if time.time() - left.stat().st_mtime > STALE_SECONDS:
                        left.unlink()
