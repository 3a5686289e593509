"""The bytes of a file of codes, piece by piece: npy, or Parquet with columns id and code."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.search.stores.exports import to_arrow
from hashlearn.streams.rows import rebatched

GROUP_ROWS = 65_536  # of a Parquet row group, for every size of batches


def npy_bytes(codes: Iterable[NDArray[np.uint8]], n_rows: int, n_bits: int, first_id: int = 0) -> Iterator[Any]:
    """An npy file, uint8 (n_rows, ⌈n_bits/8⌉), without ids."""
    header = io.BytesIO()
    shape = (n_rows, -(-n_bits // 8))
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    yield header.getvalue()
    for part in codes:
        yield part.tobytes()


def parquet_bytes(codes: Iterable[NDArray[np.uint8]], n_rows: int, n_bits: int, first_id: int = 0) -> Iterator[Any]:
    """A Parquet file as `hashlearn.search.stores.exports.write_parquet` writes it; ids count from first_id."""
    parquet = require("pyarrow.parquet", "parquet", "writing Parquet files")
    sink, writer, first = _Sink(), None, first_id
    for group in rebatched(codes, GROUP_ROWS):
        table = to_arrow(group, np.arange(first, first + len(group)), n_bits)
        if writer is None:
            writer = parquet.ParquetWriter(sink, table.schema)
        writer.write_table(table, row_group_size=GROUP_ROWS)
        first += len(group)
        yield sink.taken()
    if writer is not None:
        writer.close()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A write-only file whose bytes are taken out piece by piece."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._before = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        return memoryview(data).nbytes

    def tell(self) -> int:
        return self._before + len(self._held)

    def taken(self) -> bytes:
        data, self._held = bytes(self._held), bytearray()
        self._before += len(data)
        return data
