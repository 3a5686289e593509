"""The data folder and the canonical files in it: downloaded when absent, verified whenever they are read.

The folder is ``$HASHLEARN_DATA``, else the user's cache folder. A file that differs from the canonical one is never
used and never replaced: the error says what was found, what was expected, and how to repair it. Downloads use pooch,
which writes a temporary file, verifies it and renames it. Verifying reads each file once (CIFAR-10, 184 MB: under a
second).
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments.datasets.dataset import DataError, MissingDataError, SourceFile

VARIABLE = "HASHLEARN_DATA"
SECONDS_TO_ANSWER = 30
CHUNK = 1 << 16


def data_folder() -> Path:
    """The folder that ``$HASHLEARN_DATA`` names, else `user_cache`; it need not exist."""
    chosen = os.environ.get(VARIABLE)
    return expanded(chosen) if chosen else user_cache()


def expanded(name: str) -> Path:
    """A path in which ``~`` is replaced by the user's folder."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:  # no such user
        raise DataError(f"{name}: {error}") from None


def user_cache() -> Path:
    """The operating system's folder for files that can be made again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or expanded("~/AppData/Local")
    elif sys.platform == "darwin":
        base = expanded("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or expanded("~/.cache")
    return Path(base) / "hashlearn"


@dataclass(frozen=True)
class CanonicalFile:
    """A file of which every copy is the same.

    Attributes
    ----------
    path : relative to the data folder, with forward slashes
    size : bytes
    checksum : "sha256:…" or "md5:…", whichever its publisher states
    urls : where it can be downloaded, best first; empty if it cannot
    """

    path: str
    size: int
    checksum: str
    urls: tuple[str, ...] = ()

    def describe(self, folder: Path) -> str:
        """The place where it belongs, its size and its checksum."""
        algorithm, _, value = self.checksum.partition(":")
        return f"{folder / self.path}  ({self.size:,} bytes, {algorithm} {value})"


def obtain(
    name: str, files: Sequence[CanonicalFile], folder: Path, progress: ProgressCallback | None = None
) -> tuple[SourceFile, ...]:
    """Download the absent files and verify all of them; returns their provenance."""
    for file in absent(files, folder):
        reason = _download(file, folder, progress)
        if reason:
            raise _missing(name, absent(files, folder), folder, reason)
    return tuple(verify(file, folder) for file in files)


def absent(files: Sequence[CanonicalFile], folder: Path) -> list[CanonicalFile]:
    """The files that the folder does not hold, right or wrong."""
    return [file for file in files if not (folder / file.path).is_file()]


def verify(file: CanonicalFile, folder: Path) -> SourceFile:
    """Refuse a file that is not the canonical one, byte for byte."""
    path = folder / file.path
    algorithm, _, expected = file.checksum.partition(":")
    size = path.stat().st_size
    repair = f"Delete it{', and it is downloaded again' if file.urls else ''}, or put the right one there."
    if size != file.size:
        what = "half-downloaded" if size < file.size else "not the canonical file"
        raise DataError(f"{path}: {what}: {size:,} bytes, expected {file.size:,}. {repair}")
    found = _digest(path, algorithm)
    if found != expected:
        raise DataError(f"{path}: wrong checksum: {algorithm} {found}, expected {expected}. {repair}")
    return SourceFile(file.path, found if algorithm == "sha256" else _digest(path), size)


def provenance_of(path: Path, name: str) -> SourceFile:
    """The provenance of a file that has no canonical copy."""
    return SourceFile(name, _digest(path), path.stat().st_size)


def _missing(name: str, files: Sequence[CanonicalFile], folder: Path, reason: str) -> MissingDataError:
    lines = [f"{name}: {len(files)} file(s) missing; {reason}"]
    lines += ["Put there:", *(f"  {file.describe(folder)}" for file in files)]
    sites = dict.fromkeys(url.rpartition("/")[0] + "/" for file in files for url in file.urls)
    if sites:
        lines += ["Available from:", *(f"  {site}" for site in sites)]
    return MissingDataError("\n".join([*lines, f"or let ${VARIABLE} name a folder that has them."]))


def _digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _download(file: CanonicalFile, folder: Path, progress: ProgressCallback | None) -> str:
    """Fetch the file from the first address that has the right bytes; returns why that failed, or an empty string."""
    if not file.urls:
        return "it has to be put there by hand"
    try:
        pooch = require("pooch", "data", "downloading")
    except ImportError as error:
        return str(error)
    path = folder / file.path
    reasons = []
    for url in file.urls:
        bar = _Bar(path.name, file.size, progress) if progress is not None else False
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK, timeout=SECONDS_TO_ANSWER)
        try:
            with _quiet(pooch.get_logger()):
                pooch.retrieve(url, known_hash=file.checksum, fname=path.name, path=path.parent, downloader=downloader)
            return ""
        except (OSError, ValueError) as error:  # no answer, a refusal or a full disk; other bytes than expected
            reasons.append(f"\n  {url}: {_reason(error)}")
    return "no download succeeded:" + "".join(reasons)


class _Bar:
    """What pooch expects of a progress bar, turned into our callback."""

    def __init__(self, name: str, size: int, progress: ProgressCallback) -> None:
        self.total = size  # pooch overwrites it with the server's value, which may be absent
        self._name, self._size, self._done, self._progress = name, size, 0, progress

    def update(self, n: int) -> None:
        self._done += n
        tell(self._progress, f"downloading {self._name}", min(self._done, self._size), self._size)

    def reset(self) -> None:
        self._done = 0  # pooch resets before it reports the whole size at the end

    def close(self) -> None:
        pass


@contextmanager
def _quiet(logger: Any) -> Iterator[None]:
    """Silence pooch, which announces each download on standard error: only our command line writes there."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _reason(error: Exception) -> str:
    """The cause of a failed connection in one line, without the connection pools and retries around it."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    text = (str(cause).rpartition("): ")[2] if cause else str(error)).strip().partition("\n")[0]
    return text[:200] or type(error).__name__
