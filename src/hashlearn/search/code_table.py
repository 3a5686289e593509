"""Codes and their ids in ascending order of id, in memory and in one file.

Engines are built from the table, so an engine that breaks ties by row breaks them by id. Adding ids above the last one
is cheap; every other change costs one pass over all codes. A file holds:

    16 bytes  b"hashlearn index\\n"
     8 bytes  length of the header, little-endian
     …        header: JSON with format, n_bits, n, backend, settings, next_id; model, if it is known
     8 n      ids, int64 little-endian, ascending
     n ⌈n_bits/8⌉  packed codes
    32 bytes  SHA-256 of everything before

Loading it runs no code from the file. The reader compares the size of the file with the header before it allocates
memory. The writer writes a new file beside the old one, flushes it to disk and renames it: a kill or a full disk leaves
the old file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import bytes_of, regular_file, write_atomically
from hashlearn.core.checks import whole_number
from hashlearn.search.ids import checked_ids
from hashlearn.search.interface import checked_codes, require_n_bits

MAGIC = b"hashlearn index\n"
FORMAT = 1
LONGEST_HEADER = 65_536
LENGTH_BYTES = 8
DIGEST_BYTES = 32


class CodeTable:
    """Rows of (id, packed code), ids ascending."""

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits
        self.next_id = 0  # larger than every id ever used
        self.rewritten = 0  # how often rows have moved; while it is unchanged, new rows follow the old ones
        self._n = 0
        self._ids = [np.zeros(0, np.int64)]  # in parts, which are joined when they are read
        self._codes = [np.zeros((0, -(-n_bits // 8)), np.uint8)]

    def __len__(self) -> int:
        return self._n

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids, ascending."""
        return _joined(self._ids)

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of the ids."""
        return _joined(self._codes)

    def add(self, codes: Any, ids: Any = None) -> NDArray[np.int64]:
        """Add codes under new ids (None: the next free ones) and return the ids. All rows are added, or none."""
        codes = checked_codes(codes, self.n_bits)
        if ids is None:
            if len(codes) > np.iinfo(np.int64).max - self.next_id:
                raise ValueError(f"ids after {self.next_id - 1} would not fit 64 bits; give ids of your own")
            ids = np.arange(self.next_id, self.next_id + len(codes))
        else:
            ids = checked_ids(ids, len(codes))
        if len(ids) == 0:
            return ids
        order = np.argsort(ids, kind="stable")
        sorted_ids, codes = ids[order], codes[order]
        behind = not len(self) or sorted_ids[0] > self._ids[-1][-1]
        if not behind:
            known = self.rows_of(sorted_ids) >= 0
            if known.any():
                raise ValueError(
                    f"ids must be new, but {sorted_ids[known][0]} is there already ({known.sum()} such id(s)); "
                    "remove it first"
                )
        self._ids.append(sorted_ids)
        self._codes.append(codes)
        self._n += len(ids)
        self.next_id = max(self.next_id, int(sorted_ids[-1]) + 1)
        if not behind:
            self._select(np.argsort(self.ids, kind="stable"))
        return ids

    def remove(self, ids: Any) -> None:
        """Remove the codes with these ids. If one is missing, raise KeyError and remove nothing."""
        ids = checked_ids(ids)
        rows = self.rows_of(ids)
        if (rows < 0).any():
            missing = ids[rows < 0]
            raise KeyError(f"ids must be in the index, but {missing[0]} is not ({len(missing)} such id(s))")
        if len(ids):
            self._select(np.delete(np.arange(len(self)), rows))

    def rows_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each id, −1 for an unknown id."""
        if len(self) == 0:
            return np.full(len(ids), -1)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self.ids[places] == ids, places, -1)

    def _select(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows, in this order."""
        self._ids, self._codes, self._n = [self.ids[rows]], [self.codes[rows]], len(rows)
        self.rewritten += 1


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All parts as one array, which takes their place."""
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]


def write_table(
    path: str | os.PathLike[str], header: dict[str, Any], ids: NDArray[np.int64], codes: NDArray[np.uint8]
) -> None:
    """Write the file. An old file is replaced only when the new one is safe on disk."""
    text = json.dumps({"format": FORMAT, "n": len(ids), **header}, sort_keys=True).encode()
    opening = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text
    parts: list[Any] = [opening, bytes_of(np.asarray(ids, "<i8")), bytes_of(codes)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    write_atomically(Path(path), [*parts, digest.digest()])


def read_table(path: str | os.PathLike[str]) -> tuple[dict[str, Any], NDArray[np.int64], NDArray[np.uint8]]:
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
