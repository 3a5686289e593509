"""Downloads with pooch: to a temporary file, verified, then renamed; half a file never looks like a whole one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell

SECONDS_TO_ANSWER = 30
CHUNK = 1 << 16


class DownloadError(Exception):
    """No address gave the file: the reason for each."""


def download(
    urls: Sequence[str], checksum: str, path: Path, size: int, progress: ProgressCallback | None = None
) -> None:
    """Fetch ``path`` from the first address that has the right bytes."""
    if not urls:
        raise DownloadError("it has to be put there by hand")
    try:
        pooch = require("pooch", "data", "downloading")
    except ImportError as error:
        raise DownloadError(str(error)) from None
    reasons = []
    for url in urls:
        bar = _Bar(path.name, size, progress) if progress is not None else False
        downloader = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK, timeout=SECONDS_TO_ANSWER)
        try:
            with _quiet(pooch.get_logger()):
                pooch.retrieve(url, known_hash=checksum, fname=path.name, path=path.parent, downloader=downloader)
            return
        except (OSError, ValueError) as error:  # no answer, a refusal or a full disk; other bytes than expected
            reasons.append(f"\n  {url}: {_reason(error)}")
    raise DownloadError("no download succeeded:" + "".join(reasons))


class _Bar:
    """What pooch expects of a progress bar, turned into our callback."""

    def __init__(self, name: str, size: int, progress: ProgressCallback) -> None:
        self.total = size  # pooch overwrites it with what the server says, which may be nothing
        self._name, self._size, self._done, self._progress = name, size, 0, progress

    def update(self, n: int) -> None:
        """Hear of ``n`` more bytes."""
        self._done += n
        tell(self._progress, f"downloading {self._name}", min(self._done, self._size), self._size)

    def reset(self) -> None:
        """Start again; pooch does before it reports the whole size at the end."""
        self._done = 0

    def close(self) -> None:
        """Nothing to close."""


@contextmanager
def _quiet(logger: Any) -> Iterator[None]:
    """Pooch announces each download on standard error; only our command line writes there."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _reason(error: Exception) -> str:
    """One line; of a connection that failed, why, without the pools and retries around it."""
    cause = getattr(error.args[0], "reason", None) if error.args else None
    text = (str(cause).rpartition("): ")[2] if cause else str(error)).strip().partition("\n")[0]
    return text[:200] or type(error).__name__
