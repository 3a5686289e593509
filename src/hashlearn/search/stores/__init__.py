"""Stores: codes in PostgreSQL (pgvector), SQLite (sqlite-vec), usearch, LanceDB or DuckDB. `STORES` lists them by name.

`exports` writes the same codes in the formats of other engines. Every store needs its own optional packages, which are
imported when the store is opened.
"""

from __future__ import annotations

from hashlearn.search.stores.base import Encoder, Store
from hashlearn.search.stores.conditions import Column, Condition, column
from hashlearn.search.stores.duckdb import DuckDBStore
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
}

__all__ = [
    "STORES",
    "Column",
    "Condition",
    "DuckDBStore",
    "Encoder",
    "LanceStore",
    "PostgresStore",
    "SqliteVecStore",
    "Store",
    "UsearchStore",
    "column",
]
__all__ += sorted({store.__name__ for store in STORES.values()} - {*__all__})  # also those not in the list
