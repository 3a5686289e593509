"""Stores: codes in PostgreSQL, SQLite, DuckDB, LanceDB, or files of usearch and FAISS. `STORES` lists them by name.

`export_codes` fills one from a Parquet file of codes.
Every store needs its own optional packages, which are imported when the store is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hashlearn.core.names import require_choice
from hashlearn.core.progress import ProgressCallback
from hashlearn.search.about import About
from hashlearn.search.arrow import about_codes, codes_reader
from hashlearn.search.stores.base import DUPLICATES, Store
from hashlearn.search.stores.conditions import Column, Condition, column
from hashlearn.search.stores.duckdb import DuckDBStore
from hashlearn.search.stores.faiss import FaissStore
from hashlearn.search.stores.lancedb import LanceStore
from hashlearn.search.stores.postgres import PostgresStore
from hashlearn.search.stores.sqlite_vec import SqliteVecStore
from hashlearn.search.stores.usearch import UsearchStore

STORES: dict[str, type[Store]] = {
    "postgres": PostgresStore,
    "sqlite_vec": SqliteVecStore,
    "usearch": UsearchStore,
    "lancedb": LanceStore,
    "duckdb": DuckDBStore,
    "faiss": FaissStore,
}

__all__ = [
    "STORES",
    "About",
    "Column",
    "Condition",
    "DuckDBStore",
    "FaissStore",
    "LanceStore",
    "PostgresStore",
    "SqliteVecStore",
    "Store",
    "UsearchStore",
    "column",
    "export_codes",
]
__all__ += sorted({store.__name__ for store in STORES.values()} - {*__all__})  # also those not in the list


def export_codes(
    source: Any,
    to: str,
    place: Any,
    *,
    fields: Sequence[str] | None = None,
    duplicates: str = "replace",
    progress: ProgressCallback | None = None,
    **options: Any,
) -> int:
    """Open the store called ``to`` in `STORES`, fill it from ``source`` as `Store.load` does, and close it.

    ``source`` is a Parquet file of codes, a `pyarrow.Table` or a `pyarrow.RecordBatchReader`. It says what the store
    must be: the number of bits, the kind of ids, more columns and the model. ``place`` and ``options`` are the
    arguments of `Store.open`: a path or a URL, and such as ``table``. ``fields`` are the columns to take along; None:
    all, where the store can keep columns. Returns the number of rows.

    >>> export_codes("codes.parquet", "postgres", "postgresql://localhost/mine", table="images")  # doctest: +SKIP
    1000000
    """
    require_choice(to, "to", STORES)
    require_choice(duplicates, "duplicates", DUPLICATES)
    kind = STORES[to]
    reader = codes_reader(source, () if fields is None and not kind.has_fields else fields)
    with kind.open(place, about_codes(reader.schema), **options) as store:
        return store.load(reader, duplicates=duplicates, progress=progress)
