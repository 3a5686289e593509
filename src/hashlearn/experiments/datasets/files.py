"""Canonical files: known by path, size and checksum, fetched when absent, verified whenever they are read.

A file that is there but is not the canonical one is never used and never replaced: the error says what it is, what
it should be, and how to mend it. Verifying reads each file once (CIFAR-10, 184 MB: under a second).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hashlearn.core.progress import ProgressCallback
from hashlearn.experiments.datasets.dataset import DataError, MissingDataError, SourceFile
from hashlearn.experiments.datasets.download import DownloadError, download
from hashlearn.experiments.datasets.folder import VARIABLE


@dataclass(frozen=True)
class CanonicalFile:
    """A file that everybody has the same copy of.

    Attributes
    ----------
    path : relative to the data folder, with forward slashes
    size : bytes
    checksum : "sha256:…" or "md5:…", whichever its home publishes
    urls : where it can be had, best first
    """

    path: str
    size: int
    checksum: str
    urls: tuple[str, ...] = ()

    def describe(self, folder: Path) -> str:
        """Where it belongs, and how to recognise it."""
        algorithm, _, value = self.checksum.partition(":")
        return f"{folder / self.path}  ({self.size:,} bytes, {algorithm} {value})"


def obtain(
    name: str, files: Sequence[CanonicalFile], folder: Path, progress: ProgressCallback | None = None
) -> tuple[SourceFile, ...]:
    """Download what is absent, verify everything; what was read, for the provenance."""
    for file in absent(files, folder):
        try:
            download(file.urls, file.checksum, folder / file.path, file.size, progress)
        except DownloadError as error:
            raise missing(name, absent(files, folder), folder, str(error)) from None
    return tuple(verify(file, folder) for file in files)


def absent(files: Sequence[CanonicalFile], folder: Path) -> list[CanonicalFile]:
    """Those that are not there at all."""
    return [file for file in files if not (folder / file.path).is_file()]


def missing(name: str, files: Sequence[CanonicalFile], folder: Path, reason: str = "") -> MissingDataError:
    """The error that says what to put where."""
    lines = [f"{name}: {len(files)} file(s) missing" + (f"; {reason}" if reason else "")]
    lines += ["Put there:", *(f"  {file.describe(folder)}" for file in files)]
    homes = dict.fromkeys(url.rpartition("/")[0] + "/" for file in files for url in file.urls)
    if homes:
        lines += ["To be had from:", *(f"  {home}" for home in homes)]
    return MissingDataError("\n".join([*lines, f"or let ${VARIABLE} name a folder that has them."]))


def verify(file: CanonicalFile, folder: Path) -> SourceFile:
    """Refuse whatever is not the canonical file, byte for byte."""
    path = folder / file.path
    algorithm, _, expected = file.checksum.partition(":")
    size = path.stat().st_size
    mend = "Delete it, and it is downloaded again" if file.urls else "Delete it"
    if size != file.size:
        what = "half-downloaded" if size < file.size else "not the canonical file"
        raise DataError(f"{path}: {what}: {size:,} bytes, expected {file.size:,}. {mend}, or put the right one there.")
    found = digest(path, algorithm)
    if found != expected:
        raise DataError(
            f"{path}: wrong checksum: {algorithm} {found}, expected {expected}. {mend}, or put the right one there."
        )
    return SourceFile(file.path, found if algorithm == "sha256" else digest(path), size)


def digest(path: Path, algorithm: str = "sha256") -> str:
    """Checksum of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def seen(path: Path, name: str) -> SourceFile:
    """Provenance of a file that has no canonical copy."""
    return SourceFile(name, digest(path), path.stat().st_size)
