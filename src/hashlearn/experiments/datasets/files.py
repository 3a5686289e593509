"""The data folder and the published files in it: downloaded by pooch when absent, verified whenever they are read.

The folder is ``$HASHLEARN_DATA``, else ``~/.cache/hashlearn``. A file that differs from the published one is never
used: the error says what to do. Verifying reads each file once (CIFAR-10, 184 MB: under a second).
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments.datasets.dataset import DataError, MissingDataError, SourceFile

VARIABLE = "HASHLEARN_DATA"
SECONDS_TO_ANSWER = 30


def data_folder() -> Path:
    """The folder that ``$HASHLEARN_DATA`` names, else `user_cache`; it need not exist."""
    chosen = os.environ.get(VARIABLE)
    return expanded(chosen) if chosen else user_cache()


def user_cache() -> Path:
    """The user's folder for files that can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or expanded("~/.cache")) / "hashlearn"


def expanded(name: str) -> Path:
    """A path in which ``~`` is replaced by the user's folder."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:  # no such user
        raise DataError(f"{name}: {error}") from None


@dataclass(frozen=True)
class PublishedFile:
    """A file of which every copy is the same.

    Attributes
    ----------
    path : relative to the data folder, with forward slashes
    checksum : "sha256:…" or "md5:…", whichever its publisher states
    urls : where it can be downloaded, best first; empty if it cannot
    """

    path: str
    checksum: str
    urls: tuple[str, ...] = ()


def obtain(
    name: str, files: Sequence[PublishedFile], folder: Path, progress: ProgressCallback | None = None
) -> tuple[SourceFile, ...]:
    """Download the absent files and verify all of them; returns their provenance."""
    for file in absent(files, folder):
        download(name, file, folder, progress)
    return tuple(verify(file, folder) for file in files)


def absent(files: Sequence[PublishedFile], folder: Path) -> list[PublishedFile]:
    """The files that the folder does not hold, right or wrong."""
    return [file for file in files if not (folder / file.path).is_file()]


def verify(file: PublishedFile, folder: Path) -> SourceFile:
    """Refuse a file that is not the published one, byte for byte. Its checksum must be a SHA-256."""
    found = provenance_of(folder / file.path, file.path)
    if f"sha256:{found.sha256}" != file.checksum:
        again = ", and it is downloaded again" if file.urls else ""
        raise DataError(
            f"{folder / file.path}: wrong checksum: sha256:{found.sha256}, expected {file.checksum}. Delete it{again}, "
            "or put the right one there."
        )
    return found


def provenance_of(path: Path, name: str) -> SourceFile:
    """The provenance of a file that has no published copy."""
    with path.open("rb") as file:
        return SourceFile(name, hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


def download(
    name: str, file: PublishedFile, folder: Path, progress: ProgressCallback | None, processor: Any = None
) -> None:
    """Fetch a file from the first address that has the right bytes; ``processor`` is one of pooch's."""
    path, reasons = folder / file.path, []
    try:
        pooch = require("pooch", "data", "downloading")
        pooch.get_logger().setLevel("WARNING")  # else it announces each download on standard error
        for url in file.urls:
            tell(progress, f"downloading {path.name}", 0, None)
            bar = progress is not None and sys.stderr.isatty()
            downloader = pooch.HTTPDownloader(progressbar=bar, timeout=SECONDS_TO_ANSWER)
            place = {"fname": path.name, "path": path.parent}
            try:
                pooch.retrieve(url, known_hash=file.checksum, downloader=downloader, processor=processor, **place)
                return
            except (OSError, ValueError) as error:  # no answer, a refusal or a full disk; other bytes than expected
                reasons.append(f"{url}: {_reason(error)}")
    except ImportError as error:
        reasons.append(str(error))
    lines = [f"{name}: {path} is missing or differs, and no download succeeded:", *(reasons or ["it has no address"])]
    lines.append(f"Put the file with {file.checksum} there, or let ${VARIABLE} name a folder that has it.")
    raise MissingDataError("\n  ".join(lines))


def _reason(error: Exception) -> str:
    """The cause of a failed connection in one line, without the connection pools and retries around it."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    text = (str(cause).rpartition("): ")[2] if cause else str(error)).strip().partition("\n")[0]
    return text[:200] or type(error).__name__
