"""Rows in the binary format of COPY: the number of fields, then the size and the bytes of each; size −1 is NULL.

Ids are bigint or text, codes are bit strings behind their length. All rows of a block are made at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import IdArray
from hashlearn.search.stores.base import Batch

START = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # signature, no flags, no extension
END = b"\xff\xff"
ROWS_PER_BLOCK = 16_384
MISSING = -1

Bytes: TypeAlias = NDArray[np.uint8]
Cells: TypeAlias = tuple[int | NDArray[np.int64], Bytes]  # the size of each value, or one for all; all bytes


def blocks(batch: Batch, n_bits: int, fields: dict[str, str]) -> Iterator[bytes]:
    """All that COPY reads for a batch, some thousands of rows at a time."""
    yield START
    for first in range(0, len(batch.codes), ROWS_PER_BLOCK):
        part = slice(first, first + ROWS_PER_BLOCK)
        values = (FIELD_CELLS[kind](batch.fields[name][part]) for name, kind in fields.items())
        ids, codes = batch.ids[part], batch.codes[part]
        yield rows_of([id_cells(ids), code_cells(codes, n_bits), *values], len(codes))
    yield END


def rows_of(columns: Sequence[Cells], n: int) -> bytes:
    """The bytes of ``n`` rows, out of the cells of each column."""
    sizes = [np.full(n, size) if isinstance(size, int) else size for size, _ in columns]
    present = [np.maximum(size, 0) for size in sizes]
    ends = np.cumsum(2 + 4 * len(columns) + np.sum(present, axis=0))
    out, place = np.empty(ends[-1], np.uint8), np.concatenate([[0], ends[:-1]])
    _put(out, place, np.full(n, len(columns), ">i2"))
    place += 2
    for size, length, (_, data) in zip(sizes, present, columns, strict=True):
        _put(out, place, size.astype(">i4"))
        place += 4
        before = np.cumsum(length) - length
        out[np.repeat(place - before, length) + np.arange(len(data))] = data
        place += length
    return out.tobytes()


def id_cells(ids: IdArray) -> Cells:
    """The cells of ids."""
    return (8, ids.astype(">i8").view(np.uint8)) if ids.dtype.kind == "i" else _text_cells(ids.tolist())


def code_cells(codes: Bytes, n_bits: int) -> Cells:
    """The cells of packed codes."""
    cells = np.empty((len(codes), 4 + codes.shape[1]), np.uint8)
    cells[:, :4] = np.frombuffer(n_bits.to_bytes(4), np.uint8)
    cells[:, 4:] = codes
    return cells.shape[1], cells.reshape(-1)


def _put(out: Bytes, place: NDArray[np.int64], numbers: NDArray[Any]) -> None:
    width = numbers.dtype.itemsize
    out[place[:, None] + np.arange(width)] = numbers.view(np.uint8).reshape(-1, width)


def _text_cells(values: list[Any]) -> Cells:
    encoded = [None if value is None else value.encode() for value in values]
    sizes = np.array([MISSING if value is None else len(value) for value in encoded], np.int64)
    return sizes, np.frombuffer(b"".join(value for value in encoded if value is not None), np.uint8)


def _number_cells(dtype: str) -> Callable[[list[Any]], Cells]:
    width = np.dtype(dtype).itemsize

    def cells(values: list[Any]) -> Cells:
        there = [value for value in values if value is not None]
        data = np.array(there, dtype).view(np.uint8)
        if len(there) == len(values):
            return width, data
        return np.array([MISSING if value is None else width for value in values], np.int64), data

    return cells


FIELD_CELLS: dict[str, Callable[[list[Any]], Cells]] = {
    "text": _text_cells,
    "integer": _number_cells(">i8"),
    "real": _number_cells(">f8"),
    "boolean": _number_cells("u1"),
}
