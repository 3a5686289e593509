"""Codes and their ids in ascending order of id, in memory and in one file.

A search breaks ties by row, which is by id. Adding ids above the last one is cheap; every other change costs one pass
over all codes. A file holds:

    16 bytes  b"hashlearn index\\n"
     8 bytes  length of the header, little-endian
     …        header: JSON with format, n_bits, n, next_id; model, if it is known
     …        ids, ascending; see below
     n ⌈n_bits/8⌉  packed codes
    32 bytes  SHA-256 of everything before

Format 1 has ids that are integers: 8 n bytes, int64 little-endian. Format 2 has ``id_type`` in its header. UUIDs take
16 n bytes. Text takes 8 n bytes for the places where each id ends, int64 little-endian, and then all ids in UTF-8. The
header says in ``id_bytes`` how many bytes these are.

Loading it runs no code from the file. The reader compares the size of the file with the header before it allocates
memory. The writer writes a new file beside the old one, flushes it to disk and renames it: a kill or a full disk leaves
the old file.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import uuid
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import bytes_of, regular_file, write_atomically
from hashlearn.core.checks import whole_number
from hashlearn.core.names import require_choice
from hashlearn.search.ids import (
    INTEGER,
    LARGEST_ID,
    TEXT,
    UUID,
    WORDS,
    IdArray,
    as_objects,
    checked_ids,
    empty_ids,
    order_of,
    rows_of,
    shown,
    type_of,
)
from hashlearn.search.interface import checked_codes, require_n_bits

MAGIC = b"hashlearn index\n"
FORMAT = 2
LONGEST_HEADER = 65_536
LENGTH_BYTES = 8
DIGEST_BYTES = 32


class CodeTable:
    """Rows of (id, packed code), ids ascending."""

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits
        self.id_type: str | None = None  # that of the first ids
        self.next_id = 0  # larger than every integer that was ever an id
        self._n = 0
        self._ids: list[IdArray] = [empty_ids(INTEGER)]  # in parts, which are joined when they are read
        self._codes = [np.zeros((0, -(-n_bits // 8)), np.uint8)]

    def __len__(self) -> int:
        return self._n

    @property
    def ids(self) -> IdArray:
        """All ids, ascending."""
        return _joined(self._ids)

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of the ids."""
        return _joined(self._codes)

    def add(self, codes: Any, ids: Any = None) -> IdArray:
        """Add codes under new ids (None: the next free ones) and return the ids. All rows are added, or none."""
        codes = checked_codes(codes, self.n_bits)
        ids = self._next_ids(len(codes)) if ids is None else checked_ids(ids, len(codes), self.id_type)
        self._put(codes, ids, replace=False)
        return ids

    def upsert(self, codes: Any, ids: Any) -> None:
        """Put each code under its id, in place of the one that is there. All rows are stored, or none."""
        codes = checked_codes(codes, self.n_bits)
        self._put(codes, checked_ids(ids, len(codes), self.id_type), replace=True)

    def _next_ids(self, n: int) -> IdArray:
        if n and self.id_type not in (None, INTEGER):
            raise ValueError(f"ids must be given, because those in the index are {WORDS[str(self.id_type)]}")
        if n > LARGEST_ID - self.next_id:
            raise ValueError(f"ids after {self.next_id - 1} would not fit 64 bits; give ids of your own")
        return np.arange(self.next_id, self.next_id + n)

    def _put(self, codes: NDArray[np.uint8], ids: IdArray, *, replace: bool) -> None:
        if len(ids) == 0:
            return
        if ids.dtype.kind == "i" and (ids[1:] > ids[:-1]).all():  # which takes less time than sorting
            sorted_ids, codes = ids.copy(), codes.copy()  # the caller may change its own arrays
        else:
            order = order_of(ids)
            sorted_ids, codes = ids[order], codes[order]
        behind = not len(self) or sorted_ids[0] > self._ids[-1][-1]
        if not behind:
            rows = rows_of(sorted_ids, self.ids)
            known = rows >= 0
            if known.any() and not replace:
                raise ValueError(
                    f"ids must be new, but {shown(sorted_ids[known][0])} is there already ({known.sum()} such id(s)); "
                    "upsert replaces them"
                )
            if known.any():
                changed = self.codes.copy()  # a search in another thread may still read the old ones
                changed[rows[known]] = codes[known]
                self._codes = [changed]
                sorted_ids, codes = sorted_ids[~known], codes[~known]
        if len(sorted_ids) == 0:
            return
        if self.id_type is None:
            self.id_type = type_of(ids)
            self._ids = [empty_ids(self.id_type)]
        self._ids.append(sorted_ids)
        self._codes.append(codes)
        self._n += len(sorted_ids)
        if self.id_type == INTEGER:
            self.next_id = max(self.next_id, int(sorted_ids[-1]) + 1)
        if not behind:
            self._select(order_of(self.ids))

    def remove(self, ids: Any) -> int:
        """Remove the codes with these ids. If one is missing, raise KeyError and remove nothing."""
        ids = checked_ids(ids, id_type=self.id_type)
        rows = rows_of(ids, self.ids)
        if (rows < 0).any():
            missing = ids[rows < 0]
            raise KeyError(f"ids must be in the index, but {shown(missing[0])} is not ({len(missing)} such id(s))")
        return self.remove_rows(rows)

    def remove_rows(self, rows: NDArray[np.int64]) -> int:
        """Remove distinct rows."""
        if len(rows):
            self._select(np.delete(np.arange(len(self)), rows))
        return len(rows)

    def _select(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows, in this order."""
        self._ids, self._codes, self._n = [self.ids[rows]], [self.codes[rows]], len(rows)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All parts as one array, which takes their place."""
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]


def write_table(
    path: str | os.PathLike[str], header: dict[str, Any], ids: IdArray, codes: NDArray[np.uint8], id_type: str = INTEGER
) -> None:
    """Write the file. An old file is replaced only when the new one is safe on disk."""
    parts = _ids_to_parts(ids, id_type)
    about: dict[str, Any] = {"format": 1}
    if id_type != INTEGER:
        about = {"format": FORMAT, "id_type": id_type}
    if id_type == TEXT:
        about["id_bytes"] = parts[1].nbytes
    text = json.dumps({**about, "n": len(ids), **header}, sort_keys=True).encode()
    opening = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text
    content: list[Any] = [opening, *map(bytes_of, parts), bytes_of(codes)]
    digest = hashlib.sha256()
    for part in content:
        digest.update(part)
    write_atomically(Path(path), [*content, digest.digest()])


def read_table(path: str | os.PathLike[str]) -> tuple[dict[str, Any], IdArray, NDArray[np.uint8]]:
    """Header, ids and codes, or a ValueError that says why the file is refused."""
    try:
        with regular_file(path) as (file, size):
            return _read(file, size)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r} cannot be loaded: {error}") from None


def _read(file: BinaryIO, size: int) -> tuple[dict[str, Any], IdArray, NDArray[np.uint8]]:
    opening = file.read(len(MAGIC) + LENGTH_BYTES)
    if not opening.startswith(MAGIC):
        raise ValueError("it is not an index of hashlearn")
    length = int.from_bytes(opening[len(MAGIC) :], "little")
    opening += file.read(min(length, LONGEST_HEADER + 1))
    try:
        header = json.loads(opening[len(MAGIC) + LENGTH_BYTES :])
        n, n_bits = whole_number(header["n"], "n", least=0), header["n_bits"]
        file_format = whole_number(header["format"], "format", least=1)
        whole_number(length, "length", least=1, most=LONGEST_HEADER)
        if file_format == 1:
            header["id_type"] = INTEGER
        elif file_format == FORMAT:
            require_choice(header["id_type"], "id_type", (TEXT, UUID))
        id_bytes = whole_number(header.get("id_bytes", 0), "id_bytes", least=0)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("its header is damaged") from None
    if file_format > FORMAT:
        raise ValueError(f"its format is {file_format}, and this version reads up to {FORMAT}; update hashlearn")
    width = -(-require_n_bits(n_bits) // 8)
    sizes = [16 * n] if header["id_type"] == UUID else [8 * n, id_bytes] if header["id_type"] == TEXT else [8 * n]
    expected = len(opening) + sum(sizes) + n * width + DIGEST_BYTES
    if size != expected:
        raise ValueError(f"it has {size} bytes and should have {expected}: it is cut off or damaged")
    *parts, codes = (np.fromfile(file, np.uint8, size) for size in (*sizes, n * width))
    digest = hashlib.sha256(opening)
    for part in (*parts, codes):
        digest.update(bytes_of(part))
    if file.read(DIGEST_BYTES) != digest.digest():
        raise ValueError("its checksum is wrong: it is damaged")
    return header, _ids_from_parts(parts, header["id_type"]), codes.reshape(n, width)


def _ids_to_parts(ids: IdArray, id_type: str) -> list[NDArray[Any]]:
    if id_type == INTEGER:
        return [np.asarray(ids, "<i8")]
    if id_type == UUID:
        return [np.frombuffer(b"".join(item.bytes for item in ids.tolist()), np.uint8)]
    texts = [text.encode() for text in ids.tolist()]
    return [np.cumsum([len(text) for text in texts], dtype="<i8"), np.frombuffer(b"".join(texts), np.uint8)]


def _ids_from_parts(parts: list[NDArray[np.uint8]], id_type: str) -> IdArray:
    """Ids that may still be no valid ones: they are checked when they are added to a table."""
    if id_type == INTEGER:
        return parts[0].view("<i8").astype(np.int64, copy=False)
    if id_type == UUID:
        whole = parts[0].tobytes()
        return as_objects(uuid.UUID(bytes=whole[at : at + 16]) for at in range(0, len(whole), 16))
    ends, whole = parts[0].view("<i8"), parts[1].tobytes()
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    if (starts[1:] < starts[:-1]).any() or starts[-1] != len(whole):
        raise ValueError("the ends of its ids are damaged")
    return as_objects(whole[a:b].decode() for a, b in itertools.pairwise(starts.tolist()))
