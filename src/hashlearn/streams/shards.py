"""Codes of shards in a folder beside the output, each in a file of its own that is whole or not there at all.

.codes.npy.shards/manifest.json   what is being encoded; another model, input or size of shards begins anew
.codes.npy.shards/0000000017      codes of shard 17, then the SHA-256 of them
.codes.npy.shards/lock            held while a process works here; a kill lets go of it
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.system.atomic import UNFINISHED, write_atomically

try:
    import fcntl
except ImportError:  # a system without it has no lock, and two processes at once are the user's care
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
DIGEST_BYTES = 32
OURS = re.compile(r"\d{10}|manifest\.json|lock|\..*" + re.escape(UNFINISHED))


class Shards:
    """The folder of one output, locked while the ``with`` block runs."""

    def __init__(self, output: Path, work: dict[str, Any], n_rows: int, width: int, rows_each: int) -> None:
        self._output = output
        self._folder = output.with_name(f".{output.name}.shards")
        self._manifest = {"format": FORMAT, "width": width, "rows_each": rows_each, **work}
        self._n_rows, self._width, self._rows_each = n_rows, width, rows_each
        self._count = -(-n_rows // rows_each)
        self._there: set[int] = set()
        self._lock: int | None = None

    def __enter__(self) -> Shards:
        if not self._output.absolute().parent.is_dir():
            raise FileNotFoundError(f"{self._output}: its folder does not exist")
        self._folder.mkdir(exist_ok=True)
        self._take_lock()
        try:
            manifest = self._folder / "manifest.json"
            text = json.dumps(self._manifest, sort_keys=True)
            if not manifest.exists() or manifest.read_text("utf-8") != text:
                self._remove_files(keep="lock")
                write_atomically(manifest, [text.encode()])
            self._there = {shard for shard in range(self._count) if self._is_whole(shard)}
        except BaseException:
            self._let_go()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()

    def missing(self) -> Iterator[tuple[int, int]]:
        """Runs of shards that are still to be made: first, and one past the last."""
        first = 0
        while first < self._count:
            if first in self._there:
                first += 1
                continue
            last = first
            while last < self._count and last not in self._there:
                last += 1
            yield first, last
            first = last

    def n_rows_done(self) -> int:
        """Rows of the shards that are there."""
        return sum(self._rows_of(shard) for shard in self._there)

    def store(self, shard: int, codes: NDArray[np.uint8]) -> None:
        """Keep the codes of one shard."""
        data = np.ascontiguousarray(codes).tobytes()
        write_atomically(self._path(shard), [data, hashlib.sha256(data).digest()])

    def codes(self) -> Iterator[NDArray[np.uint8]]:
        """The codes of all shards, in order."""
        for shard in range(self._count):
            data = self._path(shard).read_bytes()
            if hashlib.sha256(data[:-DIGEST_BYTES]).digest() != data[-DIGEST_BYTES:]:
                raise ValueError(f"{self._path(shard)}: is damaged; remove it and run again")
            yield np.frombuffer(data, np.uint8, self._rows_of(shard) * self._width).reshape(-1, self._width)

    def discard(self) -> None:
        """Remove the folder, and nothing in it that is not ours."""
        self._remove_files()
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _is_whole(self, shard: int) -> bool:
        try:
            data = self._path(shard).read_bytes()
        except FileNotFoundError:
            return False
        right_size = len(data) == self._rows_of(shard) * self._width + DIGEST_BYTES
        return right_size and hashlib.sha256(data[:-DIGEST_BYTES]).digest() == data[-DIGEST_BYTES:]

    def _path(self, shard: int) -> Path:
        return self._folder / f"{shard:010d}"

    def _rows_of(self, shard: int) -> int:
        return min(self._rows_each, self._n_rows - shard * self._rows_each)

    def _take_lock(self) -> None:
        if fcntl is None:
            return
        self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._let_go()
            raise ValueError(f"{self._output}: another process is writing it just now") from None

    def _let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _remove_files(self, keep: str = "") -> None:
        for path in self._folder.iterdir():
            if OURS.fullmatch(path.name) and path.name != keep:
                path.unlink(missing_ok=True)
