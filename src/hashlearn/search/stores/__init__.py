"""Codes in engines that keep them: PostgreSQL with pgvector, SQLite with sqlite-vec, usearch, LanceDB; and `exports`,
the same codes in the formats of other engines. Each needs its own optional package."""

from __future__ import annotations

from hashlearn.search.stores.base import Encoder, Store
from hashlearn.search.stores.lancedb import LanceStore
from hashlearn.search.stores.postgres import PostgresStore
from hashlearn.search.stores.sqlite_vec import SqliteVecStore
from hashlearn.search.stores.usearch import UsearchStore

__all__ = ["Encoder", "LanceStore", "PostgresStore", "SqliteVecStore", "Store", "UsearchStore"]
