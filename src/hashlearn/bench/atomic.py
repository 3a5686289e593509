"""Files that are written whole or not at all: beside their place first, then renamed into it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

UNFINISHED = ".unfinished"
STALE_SECONDS = 3600.0


def write_text(path: Path, text: str) -> None:
    """Write ``text``, making folders on the way. A kill at any moment leaves the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=UNFINISHED)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def remove_unfinished(folder: Path, pattern: str) -> None:
    """Remove what kills have left half-written, if it is an hour old: nobody is still writing it then."""
    for path in folder.glob(pattern + UNFINISHED):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                path.unlink()
