"""SQLite with sqlite-vec: codes in a ``vec0`` table. Every query reads the whole table, so every search is exact.

sqlite-vec takes whole bytes, so codes stay padded; the order of bits does not matter. Fields
are in a plain table ``NAME_fields`` beside, because columns of ``vec0`` take no NULL. sqlite-vec is loaded by apsw,
because Python's own sqlite3 is often built without extensions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER
from hashlearn.search.interface import SearchResult
from hashlearn.search.stores.base import Batch, Store, Where, checked_name
from hashlearn.search.stores.conditions import Condition, as_sql, quoted
from hashlearn.search.stores.sqlite_session import code_values, plain_errors, writing

MOST_NEIGHBORS, MOST_TIES = 32, 128
BUSY_MS = 10_000  # how long a call waits for another writer
MOST_BITS = 8192  # vec0's limit on dimensions
REGISTRY = "hashlearn_stores"  # the table that says what every store in the file is
REGISTRY_COLUMNS = "(name TEXT PRIMARY KEY, about TEXT)"
FIELD_TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL", "boolean": "INTEGER"}


class SqliteVecStore(Store):
    """A ``vec0`` table (id, code), and a table of fields beside it. The place is a database file; the option ``table``.

    A table that this store did not make is refused. SQLite ignores the case of names, and so do we.

    >>> store = SqliteVecStore.open("codes.db", About(32), table="codes")  # doctest: +SKIP
    """

    packages, extra = ("apsw", "sqlite_vec"), "sqlite-vec"
    signature = (0, b"SQLite format 3\0")

    def __init__(self, place: str | os.PathLike[str], *, table: str = "codes") -> None:
        super().__init__(place)
        name = checked_name(table, "table")
        if name.lower() == REGISTRY or name.lower().startswith("sqlite_"):
            raise ValueError(f"table must not be {REGISTRY!r} or begin with 'sqlite_', got {name!r}")
        self._path, self._name = checked_name(os.fspath(place), "place"), name
        self.connection: Any = None
        self.table = quoted(table)
        self._fields_table, self._rowids = quoted(f"{table}_fields"), quoted(f"{table}_rowids")
        self._described = f"table {self.table}"

    def _open(self, asked: About | None) -> None:
        apsw, sqlite_vec = (self._package(name) for name in self.packages)
        if asked is not None and asked.n_bits > MOST_BITS:
            raise ValueError(f"n_bits must be at most {MOST_BITS} for sqlite-vec, got {asked.n_bits}")
        with plain_errors(f"{self._described} in {self._path!r}"):
            self.connection = apsw.Connection(self._path)
        self.connection.set_busy_timeout(BUSY_MS)
        self.connection.enable_load_extension(True)
        self.connection.load_extension(sqlite_vec.loadable_path())
        self.connection.enable_load_extension(False)
        self._make_table(asked)

    def _count(self, where: Where = None) -> int:
        if where is None:
            return int(self.connection.execute(f"SELECT count(*) FROM {self._rowids}").get)
        seen, values = self._seen(where)
        return int(self.connection.execute(f"SELECT count(*) FROM ({seen})", values).get)

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()

    def _make_table(self, asked: About | None) -> None:
        run = self.connection.execute
        with self._writing():
            self._make_registry()
            there = run(
                "SELECT name, type, sql FROM sqlite_schema "
                "WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view', 'index')",
                (self._name,),
            ).fetchone()
            if there is None:
                self._adopt(None, asked)
                self._make_new()
                return
            own_name, kind, text = there
            known = run(f"SELECT about FROM {REGISTRY} WHERE name = ?", (own_name,)).get
            if known is None or kind != "table" or not text.startswith("CREATE VIRTUAL TABLE"):
                raise ValueError(
                    f"{self._described} is there already and was not made by SqliteVecStore; choose another name"
                )
            self._adopt(About.from_json(known), asked)
            if self.fields and not self._has_fields_table():
                raise ValueError(
                    f"{self._described} needs its table {self._fields_table}, which is missing or has other columns "
                    "than this store made; restore it, or drop both tables"
                )
            if not text.endswith(self._columns_text):
                raise ValueError(f"{self._described} is there already, with other columns than ours: {text}")

    @property
    def _columns_text(self) -> str:
        return f"USING vec0(id {self._id_column} PRIMARY KEY, code bit[{8 * self.n_bytes}])"

    @property
    def _fields_text(self) -> str:
        columns = "".join(f", {quoted(name)} {FIELD_TYPES[kind]}" for name, kind in self.fields.items())
        return f"(id {self._id_column} PRIMARY KEY NOT NULL{columns})"

    @property
    def _id_column(self) -> str:
        return "INTEGER" if self.id_type == INTEGER else "TEXT"

    def _make_new(self) -> None:
        """Make the tables."""
        run = self.connection.execute
        run(f"CREATE VIRTUAL TABLE {self.table} {self._columns_text}")
        if self.fields:
            if list(run("SELECT 1 FROM sqlite_schema WHERE name = ? COLLATE NOCASE", (f"{self._name}_fields",))):
                raise ValueError(f"table {self._fields_table} is there already; fields need this name, choose another")
            run(f"CREATE TABLE {self._fields_table} {self._fields_text}")
        run(f"DELETE FROM {REGISTRY} WHERE name = ? COLLATE NOCASE", (self._name,))
        run(f"INSERT INTO {REGISTRY} VALUES (?, ?)", (self._name, self.about.to_json()))

    def _has_fields_table(self) -> bool:
        """Whether the table of fields is there, as this store makes it. Another of its name is the user's own."""
        query = "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE"
        text = self.connection.execute(query, (f"{self._name}_fields",)).get
        return text is not None and text.endswith(" " + self._fields_text)

    def _make_registry(self) -> None:
        run = self.connection.execute
        run(f"CREATE TABLE IF NOT EXISTS {REGISTRY} {REGISTRY_COLUMNS}")
        if not run("SELECT sql FROM sqlite_schema WHERE name = ?", (REGISTRY,)).get.endswith(REGISTRY_COLUMNS):
            raise ValueError(f"the file has a table {REGISTRY} of another kind; SqliteVecStore needs this name")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with writing(self.connection, self._described):
            yield

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """All batches in one transaction."""
        many = self.connection.executemany
        codes_text = f"INSERT INTO {self.table} (id, code) VALUES (?, vec_bit(?))"
        fields_text = f"INSERT INTO {self._fields_table} VALUES ({', '.join('?' * (1 + len(self.fields)))})"
        with self._writing():
            for batch in batches:
                ids = batch.ids.tolist()
                known = self._known(ids)
                if known and not replace:
                    self._refuse_known(self._required_id(known[0]), len(known))
                self._delete(known)
                many(codes_text, zip(ids, code_values(batch), strict=True))
                if self.fields:
                    many(fields_text, zip(ids, *batch.fields.values(), strict=True))

    def _known(self, ids: list[Any]) -> list[Any]:
        """Those of the ids that are there, in order."""
        return [item for (item,) in self.connection.execute(self._known_text, (json.dumps(ids),))]

    @property
    def _known_text(self) -> str:
        key = "rowid" if self.id_type == INTEGER else "id"
        return f"SELECT {key} FROM {self._rowids} WHERE {key} IN (SELECT value FROM json_each(?)) ORDER BY {key}"

    def _delete(self, ids: list[Any]) -> None:
        """Delete rows that are there, one at a time: ``vec0`` would scan the table for several."""
        for table in (self.table, self._fields_table) if self.fields else (self.table,):
            self.connection.executemany(f"DELETE FROM {table} WHERE id = ?", ((item,) for item in ids))

    def _remove(self, where: Any) -> int:
        with self._writing():
            seen = [item for (item,) in self.connection.execute(*self._seen(where))]
            self._delete(seen)
            return len(seen)

    def _seen(self, where: Where) -> tuple[str, list[Any]]:
        """A SELECT of the ids that are there and fulfill ``where``, with its parameters."""
        if isinstance(where, Condition):
            text, values = as_sql(where, quoted=quoted, placeholder="?")
            return f"SELECT id FROM {self._fields_table} WHERE {text}", list(values)
        listed = [] if where is None else where.tolist()
        return self._known_text, [json.dumps(listed)]

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        with self.connection:
            seen, values = ("", []) if where is None else self._seen(where)
            condition = seen and f" AND id IN ({seen})"
            answers = [self._nearest(code.tobytes(), k, condition, values) for code in codes]
            return self._as_result(answers, k, whole=where is None)

    def _nearest(self, code: bytes, k: int, condition: str, values: list[Any]) -> list[tuple[Any, float]]:
        """For a small k, vec0 finds the k-th distance, then everything within it, and we break ties by id. Its time
        grows with k, so for a large k, or with many ties, SQLite sorts all rows instead. With a condition, SQLite
        sorts the selected rows, because vec0 confuses integer ids that are 2**31 or more apart."""
        if k <= MOST_NEIGHBORS and not condition:
            near = f"SELECT id, distance FROM {self.table} WHERE code MATCH vec_bit(?) AND k = ?"
            found = list(self.connection.execute(near + " ORDER BY distance", (code, k)))
            if len(found) == k:
                tied = near + " AND distance <= ?"
                found = list(self.connection.execute(tied, (code, MOST_TIES, found[-1][1])))
            if len(found) < MOST_TIES:
                return sorted(found, key=lambda row: (row[1], row[0]))[:k]
        distance = "vec_distance_hamming(vec_bit(code), vec_bit(?))"
        everything = f"SELECT id, {distance} AS distance FROM {self.table} WHERE TRUE{condition} ORDER BY distance, id"
        return list(self.connection.execute(everything + " LIMIT ?", (code, *values, k)))
