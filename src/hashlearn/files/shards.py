"""Codes of batches ("shards") in a folder beside the output, each in a file that is complete or absent.

.codes.npy.shards/0000000017      codes of shard 17, the digest of hasher and rows, the SHA-256 of both

A shard is reused only if it holds the digest of the same hasher and of the same rows up to its last one. File
names, sizes and times play no part, so another file under the same name is not mistaken for the old one. Shards of
another input, hasher or place, and damaged shards, are made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import hashlearn
from hashlearn.core.atomic_files import UNFINISHED, bytes_of, output_place, write_atomically
from hashlearn.persistence.values import fingerprint

DIGEST_BYTES = 32
OURS = re.compile(r"\d{10}|\..*" + re.escape(UNFINISHED))


def discard_shards(output: Path) -> None:
    """Remove the folder that a killed process left."""
    if folder_of(output).is_dir():
        Shards(output, 0).discard()


def folder_of(output: Path) -> Path:
    """The folder that holds the shards of an output."""
    return output.with_name(f".{output.name}.shards")


class Shards:
    """The folder of one output."""

    def __init__(self, output: Path, width: int) -> None:
        self._output = output
        self._folder = folder_of(output)
        self._width = width
        self._stored: list[tuple[int, bytes]] = []  # rows and digest of each

    def __enter__(self) -> Shards:
        output_place(self._output)
        self._folder.mkdir(exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder.is_dir() and not any(self._folder.glob("[0-9]*")):  # there is nothing to go on with
            self.discard()

    def take_up(self, n_rows: int, work: bytes) -> bool:
        """Whether the next shard is there already, with the codes of ``n_rows`` rows and this digest."""
        if self._read(len(self._stored), n_rows, work) is None:
            return False
        self._stored.append((n_rows, work))
        return True

    def store(self, codes: NDArray[np.uint8], work: bytes) -> None:
        """Write the codes of the next shard."""
        data = codes.tobytes() + work
        write_atomically(self._path(len(self._stored)), [data, hashlib.sha256(data).digest()])
        self._stored.append((len(codes), work))

    def codes(self) -> Iterator[NDArray[np.uint8]]:
        """The codes of all shards, in order."""
        for shard, (n_rows, work) in enumerate(self._stored):
            data = self._read(shard, n_rows, work)
            if data is None:
                raise ValueError(f"{self._path(shard)}: was damaged or removed just now; run again")
            yield np.frombuffer(data, np.uint8, n_rows * self._width).reshape(-1, self._width)

    def discard(self) -> None:
        """Remove our files, and the folder if it is then empty."""
        for path in self._folder.iterdir():
            if OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _read(self, shard: int, n_rows: int, work: bytes) -> bytes | None:
        """The content of a shard; None if it is absent, damaged, or belongs to other work."""
        path = self._path(shard)
        if not path.is_file():
            return None
        data = path.read_bytes()
        held, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
        right = len(held) == n_rows * self._width + len(work) and held.endswith(work)
        return data if right and hashlib.sha256(held).digest() == digest else None

    def _path(self, shard: int) -> Path:
        return self._folder / f"{shard:010d}"


class WorkDigest:
    """The digest of a hasher and of the rows given to `add`; batches of any size give the same digest of dense rows.

    ``model`` is the digest of the hasher alone, or None.
    """

    def __init__(self, hasher: Any, identity: str = "") -> None:
        self.model = fingerprint(hasher)
        # A hasher that nothing identifies gets a random name, so that its shards are never reused.
        named = self.model or (None if identity else secrets.token_hex(32))
        described = [hashlearn.__version__, named, identity, int(hasher.n_bits)]
        self._digest = hashlib.sha256(json.dumps(described).encode())
        self._dtype: Any = None

    def add(self, batch: Any) -> bytes:
        """The digest once these rows have been added."""
        if sp.issparse(batch):
            rows = sp.csr_array(batch)
            parts = (rows.indptr, rows.indices, rows.data)
            self._describe(["sparse", rows.shape, rows.nnz, *(part.dtype.str for part in parts)])
            for part in parts:
                self._digest.update(bytes_of(part))
        else:
            if batch.dtype != self._dtype:
                self._describe(["dense", batch.shape[1], batch.dtype.str])
                self._dtype = batch.dtype
            self._digest.update(bytes_of(batch))
        return self._digest.digest()

    def _describe(self, layout: list[Any]) -> None:
        self._digest.update(json.dumps(layout).encode())
