"""One file for one index: nothing in it is run, every byte is under a checksum, and it is there whole or not at all.

    16 bytes  b"hashlearn index\\n"
     8 bytes  length of the header, little-endian
     …        header: JSON with format, n_bits, n, backend, settings, next_id
     8 n      ids, int64 little-endian, ascending
     n ⌈n_bits/8⌉  packed codes
    32 bytes  SHA-256 of all that comes before

The size of the file must be what the header says before anything of that size is allocated. The file is written beside
its place, flushed to disk and renamed into it: a kill or a full disk leaves the old file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import write_atomically
from hashlearn.core.regular_files import regular_file
from hashlearn.search.inputs import require_n_bits

MAGIC = b"hashlearn index\n"
FORMAT = 1
LONGEST_HEADER = 65_536
LENGTH_BYTES = 8
DIGEST_BYTES = 32
CHUNK_BYTES = 1 << 24


def write(
    path: str | os.PathLike[str], header: dict[str, Any], ids: NDArray[np.int64], codes: NDArray[np.uint8]
) -> None:
    """Write the file, replacing one that is there only when the new one is safe on disk."""
    text = json.dumps({"format": FORMAT, "n": len(ids), **header}, sort_keys=True).encode()
    parts = [
        MAGIC,
        len(text).to_bytes(LENGTH_BYTES, "little"),
        text,
        np.ascontiguousarray(ids.astype("<i8", copy=False)).data.cast("B") if len(ids) else b"",
        np.ascontiguousarray(codes).data.cast("B") if len(ids) else b"",
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    write_atomically(Path(path), [*parts, digest.digest()])


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.uint8]]:
    """Header, ids and codes, or a ValueError that says why the file is refused."""
    try:
        with regular_file(path) as (file, size):
            return _read(file, size)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from None


def _read(file: BinaryIO, size: int) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.uint8]]:
    if file.read(len(MAGIC)) != MAGIC:
        raise ValueError("it is not an index of hashlearn")
    length_bytes = file.read(LENGTH_BYTES)
    length = int.from_bytes(length_bytes, "little")
    if len(length_bytes) < LENGTH_BYTES or length > LONGEST_HEADER:
        raise ValueError("its header is damaged")
    text = file.read(length)
    try:
        header = json.loads(text)
        file_format, n, n_bits = header["format"], header["n"], header["n_bits"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("its header is damaged") from None
    if isinstance(file_format, int) and not isinstance(file_format, bool) and file_format > FORMAT:
        raise ValueError(f"its format is {file_format}, and this version reads up to {FORMAT}; update hashlearn")
    if file_format != FORMAT or isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ValueError("its header is damaged")
    width = -(-require_n_bits(n_bits) // 8)
    start = len(MAGIC) + LENGTH_BYTES + length
    expected = start + n * (8 + width) + DIGEST_BYTES
    if size != expected:
        raise ValueError(f"it has {size} bytes and should have {expected}: it is cut off or damaged")
    digest = hashlib.sha256(MAGIC + length_bytes + text)
    ids, codes = np.empty(n, "<i8"), np.empty((n, width), np.uint8)
    for array in (ids, codes):
        _fill(file, array, digest)
    if file.read(DIGEST_BYTES) != digest.digest():
        raise ValueError("its checksum is wrong: it is damaged")
    return header, ids.astype(np.int64, copy=False), codes


def _fill(file: BinaryIO, array: NDArray[Any], digest: Any) -> None:
    if array.size == 0:
        return
    view = array.data.cast("B")
    for first in range(0, len(view), CHUNK_BYTES):
        part = view[first : first + CHUNK_BYTES]
        if file.readinto(part) != len(part):  # type: ignore[attr-defined]
            raise ValueError("it is cut off")
        digest.update(part)
