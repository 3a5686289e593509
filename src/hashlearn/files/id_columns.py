"""Ids of the rows of a file, checked: every row has one, and none occurs twice."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from hashlearn.core.packages import require
from hashlearn.files.columns import GROUP_ROWS
from hashlearn.files.rows import RowSource
from hashlearn.search.arrow import comparable_column, ids_from_arrow, require_distinct
from hashlearn.search.ids import IdArray

PURPOSE = "reading ids"


def read_ids(source: RowSource, *, distinct: bool = True) -> IdArray:
    """The ids of all rows, in memory: those of the id column, or row numbers.

    A row without an id is refused by its number, and so is an id that occurs twice, unless ``distinct`` is False.
    """
    if source.columns.id is None:
        return np.arange(source.n_rows)
    arrow = require("pyarrow", "parquet", PURPOSE)
    parts = [chunk for table in source.beside(GROUP_ROWS) for chunk in table[source.columns.id].chunks]
    column = comparable_column(arrow.chunked_array(parts))
    _require_present(column, source)
    try:
        if distinct:
            require_distinct(column)
        return ids_from_arrow(column, distinct=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source.name}: column {source.columns.id!r}: {error}") from None


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


def _require_present(column: Any, source: RowSource) -> None:
    """Refuse a row without an id; empty text is none."""
    arrow, compute = require("pyarrow", "parquet", PURPOSE), require("pyarrow.compute", "parquet", PURPOSE)
    absent = compute.is_null(column)
    if arrow.types.is_string(column.type):
        absent = compute.or_(absent, compute.fill_null(compute.equal(column, ""), False))
    row = compute.index(absent, True).as_py()
    if row >= 0:
        raise ValueError(f"{source.name}: column {source.columns.id!r} has no id at row {row}; every row needs one")
