"""One file for one index. Loading it runs no code from the file, and a checksum covers every byte.

    16 bytes  b"hashlearn index\\n"
     8 bytes  length of the header, little-endian
     …        header: JSON with format, n_bits, n, backend, settings, next_id
     8 n      ids, int64 little-endian, ascending
     n ⌈n_bits/8⌉  packed codes
    32 bytes  SHA-256 of everything before

The reader compares the size of the file with the header before it allocates memory. The writer writes a new file beside
the old one, flushes it to disk and renames it: a kill or a full disk leaves the old file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import regular_file, write_atomically
from hashlearn.core.checks import whole_number
from hashlearn.search.inputs import require_n_bits

MAGIC = b"hashlearn index\n"
FORMAT = 1
LONGEST_HEADER = 65_536
LENGTH_BYTES = 8
DIGEST_BYTES = 32


def write(
    path: str | os.PathLike[str], header: dict[str, Any], ids: NDArray[np.int64], codes: NDArray[np.uint8]
) -> None:
    """Write the file. An old file is replaced only when the new one is safe on disk."""
    text = json.dumps({"format": FORMAT, "n": len(ids), **header}, sort_keys=True).encode()
    opening = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text
    arrays = (np.ascontiguousarray(ids, "<i8"), np.ascontiguousarray(codes))
    parts: list[Any] = [opening, *(array.reshape(-1).view(np.uint8) for array in arrays)]
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
    opening = file.read(len(MAGIC) + LENGTH_BYTES)
    if not opening.startswith(MAGIC):
        raise ValueError("it is not an index of hashlearn")
    length = int.from_bytes(opening[len(MAGIC) :], "little")
    opening += file.read(min(length, LONGEST_HEADER + 1))
    try:
        header = json.loads(opening[len(MAGIC) + LENGTH_BYTES :])
        n, n_bits = whole_number(header["n"], "n", least=0), header["n_bits"]
        file_format = whole_number(header["format"], "format", least=FORMAT)
        whole_number(length, "length", least=1, most=LONGEST_HEADER)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("its header is damaged") from None
    if file_format > FORMAT:
        raise ValueError(f"its format is {file_format}, and this version reads up to {FORMAT}; update hashlearn")
    width = -(-require_n_bits(n_bits) // 8)
    expected = len(opening) + n * (8 + width) + DIGEST_BYTES
    if size != expected:
        raise ValueError(f"it has {size} bytes and should have {expected}: it is cut off or damaged")
    ids, codes = np.fromfile(file, "<i8", n), np.fromfile(file, np.uint8, n * width)
    digest = hashlib.sha256(opening)
    digest.update(ids.data)
    digest.update(codes.data)
    if file.read(DIGEST_BYTES) != digest.digest():
        raise ValueError("its checksum is wrong: it is damaged")
    return header, ids.astype(np.int64, copy=False), codes.reshape(n, width)
