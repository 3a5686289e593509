"""SQLite with sqlite-vec: codes in a ``vec0`` table, which is read whole for every query, hence exact.

sqlite-vec takes whole bytes, so codes stay padded; the order of bits does not matter to it. It is loaded through
apsw, because Python's own sqlite3 is often built without extensions.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.results import SearchResult
from hashlearn.search.stores.base import Encoder, Store, require_same_bits
from hashlearn.system.packages import require

MOST_NEIGHBOURS, MOST_TIES = 32, 128


class SqliteVecStore(Store):
    """A ``vec0`` table (id, code). Open it with `create`.

    >>> store = SqliteVecStore.create("codes.db", "codes", 32)  # doctest: +SKIP
    """

    def __init__(self, connection: Any, table: str, n_bits: int, hasher: Encoder | None) -> None:
        super().__init__(n_bits, hasher)
        self.connection, self.table = connection, _quoted(table)

    @classmethod
    def create(cls, path: str | os.PathLike[str], table: str, n_bits: int, *, hasher: Encoder | None = None) -> Self:
        """Open the table in the database file, and make both where they are missing; ":memory:" for no file."""
        apsw = require("apsw", "sqlite-vec", "a sqlite-vec store")
        extension = require("sqlite_vec", "sqlite-vec", "a sqlite-vec store").loadable_path()
        connection = apsw.Connection(os.fspath(path))
        try:
            connection.set_busy_timeout(10_000)
            connection.enable_load_extension(True)
            connection.load_extension(extension)
            connection.enable_load_extension(False)
            store = cls(connection, table, n_bits, hasher)
            store._make_table(table)
        except BaseException:
            connection.close()
            raise
        return store

    def __len__(self) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {self.table}").get)

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def _make_table(self, name: str) -> None:
        with self.connection:
            run = self.connection.execute
            run("CREATE TABLE IF NOT EXISTS hashlearn_stores (name TEXT PRIMARY KEY, n_bits INTEGER NOT NULL)")
            run(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {self.table} "
                f"USING vec0(id INTEGER PRIMARY KEY, code bit[{8 * self.n_bytes}])"
            )
            run("INSERT OR IGNORE INTO hashlearn_stores VALUES (?, ?)", (name, self.n_bits))
            there = run("SELECT n_bits FROM hashlearn_stores WHERE name = ?", (name,)).get
            require_same_bits(f"table {self.table}", there, self.n_bits)

    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        with self.connection:  # one transaction; vec0 knows no INSERT OR REPLACE
            many = self.connection.executemany
            many(f"DELETE FROM {self.table} WHERE id = ?", ((item,) for item in ids.tolist()))
            rows = zip(ids.tolist(), (code.tobytes() for code in codes), strict=True)
            many(f"INSERT INTO {self.table} (id, code) VALUES (?, vec_bit(?))", rows)

    def _remove(self, ids: NDArray[np.int64]) -> int:
        with self.connection:
            before = len(self)
            delete = f"DELETE FROM {self.table} WHERE id = ?"
            self.connection.executemany(delete, ((item,) for item in ids.tolist()))
            return before - len(self)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool) -> SearchResult:
        with self.connection:
            return self._as_result([self._nearest(code.tobytes(), k) for code in codes], k, exact=True)

    def _nearest(self, code: bytes, k: int) -> list[tuple[int, float]]:
        """For few neighbours vec0 is fast: the distance of the k-th, then all within it, of which ties go by id. Its
        time grows with k, so for many, or among many ties, all rows are sorted instead."""
        if k <= MOST_NEIGHBOURS:
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


def _quoted(name: str) -> str:
    if not name or "\0" in name:
        raise ValueError(f"table must be a name, got {name!r}")
    return '"' + name.replace('"', '""') + '"'
