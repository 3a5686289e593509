"""SQLite with sqlite-vec: codes in a ``vec0`` table. Every query reads the whole table, so every search is exact.

sqlite-vec takes whole bytes, so codes stay padded; the order of bits does not matter. It is loaded by apsw, because
Python's own sqlite3 is often built without extensions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.interface import SearchResult, require_n_bits
from hashlearn.search.model_digest import checked_model
from hashlearn.search.stores.base import Encoder, Store, checked_name

MOST_NEIGHBORS, MOST_TIES = 32, 128
MOST_BITS = 8192  # vec0's limit on dimensions
REGISTRY = "hashlearn_stores"  # the table that holds n_bits and the model's digest of every store in the file
REGISTRY_COLUMNS = [("name", "TEXT"), ("n_bits", "INTEGER"), ("model", "TEXT")]


class SqliteVecStore(Store):
    """A ``vec0`` table (id, code). Open it with `create`.

    >>> store = SqliteVecStore.create("codes.db", "codes", 32)  # doctest: +SKIP
    """

    packages, extra = ("apsw", "sqlite_vec"), "sqlite-vec"

    def __init__(self, connection: Any, table: str, n_bits: int, hasher: Encoder | None, model: str | None) -> None:
        super().__init__(n_bits, hasher, model)
        self.connection, self._name = connection, table
        self.table = '"' + table.replace('"', '""') + '"'
        self._described = f"table {self.table}"

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        table: str,
        n_bits: int,
        *,
        hasher: Encoder | None = None,
        model: str | None = None,
    ) -> Self:
        """Open the table in the database file (":memory:": no file); make both if they are missing.

        A table that this store did not make is refused. SQLite ignores the case of names, and so do we.
        """
        apsw, sqlite_vec = (cls._package(name) for name in cls.packages)
        name = checked_name(table, "table")
        if name.lower() == REGISTRY or name.lower().startswith("sqlite_"):
            raise ValueError(f"table must not be {REGISTRY!r} or begin with 'sqlite_', got {name!r}")
        if require_n_bits(n_bits) > MOST_BITS:
            raise ValueError(f"n_bits must be at most {MOST_BITS} for sqlite-vec, got {n_bits}")
        model = checked_model(model)
        connection = apsw.Connection(checked_name(os.fspath(path), "path"))
        try:
            store = cls(connection, name, n_bits, hasher, model)
            connection.set_busy_timeout(10_000)
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            connection.enable_load_extension(False)
            store._make_table()
        except BaseException:
            connection.close()
            raise
        return store

    def _count(self) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {self.table}").get)

    def _close(self) -> None:
        self.connection.close()

    def _make_table(self) -> None:
        run = self.connection.execute
        columns = f"USING vec0(id INTEGER PRIMARY KEY, code bit[{8 * self.n_bytes}])"
        with self._writing():
            self._make_registry()
            there = run(
                "SELECT name, type, sql FROM sqlite_schema "
                "WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view', 'index')",
                (self._name,),
            ).fetchone()
            if there is None:
                run(f"CREATE VIRTUAL TABLE {self.table} {columns}")
                run(f"DELETE FROM {REGISTRY} WHERE name = ? COLLATE NOCASE", (self._name,))
                run(f"INSERT INTO {REGISTRY} VALUES (?, ?, ?)", (self._name, self.n_bits, self.model))
                return
            own_name, kind, text = there
            known = run(f"SELECT n_bits, model FROM {REGISTRY} WHERE name = ?", (own_name,)).fetchone()
            if known is None or kind != "table" or not text.startswith("CREATE VIRTUAL TABLE"):
                raise ValueError(
                    f"{self._described} is there already and was not made by SqliteVecStore; choose another name"
                )
            self._require_bits(known[0])
            if not text.endswith(columns):
                raise ValueError(f"{self._described} is there already, with other columns than ours: {text}")
            self._require_model(known[1])

    def _make_registry(self) -> None:
        run = self.connection.execute
        run(f"CREATE TABLE IF NOT EXISTS {REGISTRY} (name TEXT PRIMARY KEY, n_bits INTEGER NOT NULL, model TEXT)")
        columns = list(run(f"SELECT name, type FROM pragma_table_info('{REGISTRY}')"))
        if columns == REGISTRY_COLUMNS[:2]:  # made before models had a place
            run(f"ALTER TABLE {REGISTRY} ADD COLUMN model TEXT")
        elif columns != REGISTRY_COLUMNS:
            raise ValueError(f"the file has a table {REGISTRY} of another kind; SqliteVecStore needs this name")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that waits for other writers before it reads."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        with self.connection:  # one transaction; vec0 knows no INSERT OR REPLACE
            many = self.connection.executemany
            many(f"DELETE FROM {self.table} WHERE id = ?", ((item,) for item in ids.tolist()))
            rows = zip(ids.tolist(), (code.tobytes() for code in codes), strict=True)
            many(f"INSERT INTO {self.table} (id, code) VALUES (?, vec_bit(?))", rows)

    def _remove(self, ids: NDArray[np.int64]) -> int:
        with self._writing():
            before = self._count()
            delete = f"DELETE FROM {self.table} WHERE id = ?"
            self.connection.executemany(delete, ((item,) for item in ids.tolist()))
            return before - self._count()

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool) -> SearchResult:
        with self.connection:
            return self._as_result([self._nearest(code.tobytes(), k) for code in codes], k, exact=True)

    def _nearest(self, code: bytes, k: int) -> list[tuple[int, float]]:
        """For a small k, vec0 finds the k-th distance, then everything within it, and we break ties by id. Its time
        grows with k, so for a large k, or with many ties, SQLite sorts all rows instead."""
        if k <= MOST_NEIGHBORS:
            near = f"SELECT id, distance FROM {self.table} WHERE code MATCH vec_bit(?) AND k = ?"
            found = list(self.connection.execute(near + " ORDER BY distance", (code, k)))
            if len(found) == k:
                farthest = found[-1][1]
                found = list(self.connection.execute(near + " AND distance <= ?", (code, MOST_TIES, farthest)))
            if len(found) < MOST_TIES:
                return sorted(found, key=lambda row: (row[1], row[0]))[:k]
        distance = "vec_distance_hamming(vec_bit(code), vec_bit(?))"
        everything = f"SELECT id, {distance} AS distance FROM {self.table} ORDER BY distance, id LIMIT ?"
        return list(self.connection.execute(everything, (code, k)))
