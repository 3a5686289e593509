"""Ids of the rows of a file, checked: every row has one, and none occurs twice."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.packages import require
from hashlearn.search.ids import IdArray, shown
from hashlearn.search.stores.arrow import comparable_column, ids_from_arrow
from hashlearn.streams.columns import GROUP_ROWS
from hashlearn.streams.rows import RowSource

PURPOSE = "reading ids"


def read_ids(source: RowSource, *, distinct: bool = True) -> IdArray:
    """The ids of all rows, in memory: those of the id column, or row numbers.

    A row without an id is refused by its number, and so is an id that occurs twice, unless ``distinct`` is False.
    """
    if source.columns.id is None:
        return np.arange(source.n_rows)
    arrow = require("pyarrow", "parquet", PURPOSE)
    parts = [comparable_column(table[source.columns.id]) for table in source.beside(GROUP_ROWS)]
    column = arrow.chunked_array([chunk for part in parts for chunk in part.chunks])
    _require_present(column, source)
    if distinct:
        _require_distinct(column, source)
        return np.concatenate([_ids(part, source, number * GROUP_ROWS) for number, part in enumerate(parts)])
    encoded = column.combine_chunks().dictionary_encode()
    different: IdArray = _ids(encoded.dictionary, source, 0)
    rows: NDArray[np.int64] = encoded.indices.to_numpy()
    return np.asarray(different[rows])


def digest_beside(source: RowSource) -> bytes:
    """SHA-256 of the id column and of the kept columns; nothing if there are none."""
    if not source.columns.beside:
        return b""
    digest = hashlib.sha256()
    for number, table in enumerate(source.beside(GROUP_ROWS)):
        if number == 0:
            digest.update(str(table.schema.remove_metadata()).encode())
        for batch in table.to_batches():
            digest.update(batch.serialize())
    return digest.digest()


def _ids(column: Any, source: RowSource, first: int) -> IdArray:
    try:
        return ids_from_arrow(column)
    except (TypeError, ValueError) as error:
        last = first + len(column) - 1
        raise ValueError(f"{source.name}: column {source.columns.id!r}, rows {first} to {last}: {error}") from None


def _require_present(column: Any, source: RowSource) -> None:
    """Refuse a row without an id; empty text is none."""
    arrow, compute = require("pyarrow", "parquet", PURPOSE), require("pyarrow.compute", "parquet", PURPOSE)
    absent = compute.is_null(column)
    if arrow.types.is_string(column.type):
        absent = compute.or_(absent, compute.fill_null(compute.equal(column, ""), False))
    row = compute.index(absent, True).as_py()
    if row >= 0:
        raise ValueError(f"{source.name}: column {source.columns.id!r} has no id at row {row}; every row needs one")


def _require_distinct(column: Any, source: RowSource) -> None:
    """Refuse an id that occurs twice, with two of its rows."""
    if len(column.unique()) == len(column):
        return
    seen: dict[Any, int] = {}
    for row, item in enumerate(column.to_pylist()):
        if item in seen:
            raise ValueError(
                f"{source.name}: column {source.columns.id!r} holds {shown(item)} at row {seen[item]} and again at row "
                f"{row}; ids must be distinct"
            )
        seen[item] = row
