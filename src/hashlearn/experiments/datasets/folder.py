"""Where data lives: ``$HASHLEARN_DATA``, else the user's cache folder; and files that appear whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hashlearn.core.atomic_files import replacing
from hashlearn.experiments.datasets.dataset import DataError

VARIABLE = "HASHLEARN_DATA"


def data_folder() -> Path:
    """The folder that ``$HASHLEARN_DATA`` names, else `user_cache`; it need not exist."""
    chosen = os.environ.get(VARIABLE)
    return at_home(chosen) if chosen else user_cache()


def at_home(name: str) -> Path:
    """A path with ``~`` as the user's home folder."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:  # no such user
        raise DataError(f"{name}: {error}") from None


def user_cache() -> Path:
    """The operating system's place for files that can be had again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or at_home("~/AppData/Local")
    elif sys.platform == "darwin":
        base = at_home("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or at_home("~/.cache")
    return Path(base) / "hashlearn"


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the name ``path`` only after the block has ended without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as beside, open(beside, "wb") as file:
        yield file
