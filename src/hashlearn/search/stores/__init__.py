"""Stores: codes in PostgreSQL, SQLite, DuckDB, LanceDB, or files of usearch and FAISS. `STORES` lists them by name.

`export_codes` fills one from a Parquet file of codes.
Every store needs its own optional packages, which are imported when the store is opened.
"""

from __future__ import annotations

from hashlearn.search.about import About
from hashlearn.search.stores.base import Store
from hashlearn.search.stores.conditions import Column, Condition, column
from hashlearn.search.stores.duckdb import DuckDBStore
from hashlearn.search.stores.faiss import FaissStore
from hashlearn.search.stores.lancedb import LanceStore
from hashlearn.search.stores.loading import export_codes
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
