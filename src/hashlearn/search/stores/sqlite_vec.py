"""SQLite with sqlite-vec: codes in a ``vec0`` table. Every query reads the whole table, so every search is exact.

sqlite-vec takes whole bytes, so codes stay padded; the order of bits does not matter. Fields are in a plain table
``NAME_fields`` beside, because columns of ``vec0`` take no NULL. sqlite-vec is loaded by apsw, because Python's own
sqlite3 is often built without extensions. The table ``hashlearn_stores`` holds `About` of every store in the file.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER, TEXT, IdArray
from hashlearn.search.stores.base import Batch, Where, checked_name
from hashlearn.search.stores.conditions import Condition, quoted
from hashlearn.search.stores.sql import Dialect, SqlStore

MOST_NEIGHBORS, MOST_TIES = 32, 128
BUSY_MS = 10_000  # how long a call waits for another writer
MOST_BITS = 8192  # vec0's limit on dimensions
REGISTRY = "hashlearn_stores"
REGISTRY_COLUMNS = "(name TEXT PRIMARY KEY, about TEXT)"
VEC0_FAILED = ("Internal sqlite-vec error", "disk is full")  # what vec0 says if SQLite cannot write


class SqliteVecStore(SqlStore):
    """A ``vec0`` table (id, code) in a database file, and a table of fields beside it. Its option is ``table``.

    A table that this store did not make is refused. SQLite ignores the case of names, and so do we.

    >>> store = SqliteVecStore.open("codes.db", About(32), table="codes")  # doctest: +SKIP
    """

    packages, extra = ("apsw", "sqlite_vec"), "sqlite-vec"
    signature = (0, b"SQLite format 3\0")
    dialect = Dialect(
        placeholder="?",
        distance="vec_distance_hamming(vec_bit({code}), vec_bit(?))",
        id_types={INTEGER: "INTEGER", TEXT: "TEXT"},
        field_types={"text": "TEXT", "integer": "INTEGER", "real": "REAL", "boolean": "INTEGER"},
    )

    def __init__(self, place: str | os.PathLike[str], *, table: str = "codes") -> None:
        super().__init__(place, table)
        if table.lower() == REGISTRY or table.lower().startswith("sqlite_"):
            raise ValueError(f"table must not be {REGISTRY!r} or begin with 'sqlite_', got {table!r}")
        self._path = checked_name(os.fspath(place), "place")
        self._fields_table, self._rowids = quoted(f"{table}_fields"), quoted(f"{table}_rowids")

    def _connect(self, asked: About | None) -> None:
        apsw, sqlite_vec = (self._package(name) for name in self.packages)
        if asked is not None and asked.n_bits > MOST_BITS:
            raise ValueError(f"n_bits must be at most {MOST_BITS} for sqlite-vec, got {asked.n_bits}")
        with self._plain_errors():
            self.connection = apsw.Connection(self._path)
        self.connection.set_busy_timeout(BUSY_MS)
        self.connection.enable_load_extension(True)
        self.connection.load_extension(sqlite_vec.loadable_path())
        self.connection.enable_load_extension(False)

    def _stored_about(self, asked: About | None) -> About | None:
        self._rows(f"CREATE TABLE IF NOT EXISTS {REGISTRY} {REGISTRY_COLUMNS}")
        if not self._declared(REGISTRY)[1].endswith(REGISTRY_COLUMNS):
            raise ValueError(f"the file has a table {REGISTRY} of another kind; SqliteVecStore needs this name")
        name, declared = self._declared(self._name)
        if not name:
            return None
        known = self._rows(f"SELECT about FROM {REGISTRY} WHERE name = ?", [name])
        if not known or not declared.startswith("CREATE VIRTUAL TABLE"):
            raise ValueError(
                f"{self._described} is there already and was not made by SqliteVecStore; choose another name"
            )
        return About.from_json(known[0][0])

    def _require_own(self) -> None:
        declared = self._declared(self._name)[1]
        if not declared.endswith(self._codes_text):
            raise ValueError(f"{self._described} is there already, with other columns than ours: {declared}")
        if self.fields and not self._declared(f"{self._name}_fields")[1].endswith(self._fields_text):
            raise ValueError(
                f"{self._described} needs its table {self._fields_table}, which is missing or has other columns than "
                "this store made; restore it, or drop both tables"
            )

    def _make(self) -> None:
        self._rows(f"CREATE VIRTUAL TABLE {self.table} {self._codes_text}")
        if self.fields:
            if self._declared(f"{self._name}_fields")[0]:
                raise ValueError(f"table {self._fields_table} is there already; fields need this name, choose another")
            self._rows(f"CREATE TABLE {self._fields_table} {self._fields_text}")
        self._rows(f"DELETE FROM {REGISTRY} WHERE name = ? COLLATE NOCASE", [self._name])
        self._rows(f"INSERT INTO {REGISTRY} VALUES (?, ?)", [self._name, self.about.to_json()])

    def _declared(self, name: str) -> tuple[str, str]:
        """The own name of a table, view or index, and the statement that made it; empty if there is none."""
        query = "SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE name = ? COLLATE NOCASE AND type <> 'trigger'"
        return next(iter(self._rows(query, [name])), ("", ""))

    @property
    def _codes_text(self) -> str:
        return f"USING vec0(id {self.dialect.id_types[self.id_type]} PRIMARY KEY, code bit[{8 * self.n_bytes}])"

    @property
    def _fields_text(self) -> str:
        return f"({self._new_columns()})"

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """All batches in one transaction."""
        many = self.connection.executemany
        codes_text = f"INSERT INTO {self.table} (id, code) VALUES (?, vec_bit(?))"
        fields_text = f"INSERT INTO {self._fields_table} VALUES ({', '.join('?' * (1 + len(self.fields)))})"
        with self._transaction(writing=True):
            for batch in batches:
                ids = batch.ids.tolist()
                known = self._seen(batch.ids)
                if known and not replace:
                    self._refuse_known(self._required_id(known[0]), len(known))
                self._delete(known)
                many(codes_text, zip(ids, self._code_values(batch.codes), strict=True))
                if self.fields:
                    many(fields_text, zip(ids, *batch.fields.values(), strict=True))

    def _delete(self, ids: list[Any]) -> None:
        """Delete rows that are there, one at a time: ``vec0`` would scan the table for several."""
        for table in (self.table, self._fields_table) if self.fields else (self.table,):
            self.connection.executemany(f"DELETE FROM {table} WHERE id = ?", ((item,) for item in ids))

    def _remove(self, where: Any) -> int:
        with self._transaction(writing=True):
            seen = self._seen(where)
            self._delete(seen)
            return len(seen)

    def _count(self, where: Where = None) -> int:
        if where is None:
            return int(self._rows(f"SELECT count(*) FROM {self._rowids}")[0][0])
        seen, values = self._select(where)
        return int(self._rows(f"SELECT count(*) FROM ({seen})", values)[0][0])

    def _seen(self, where: Where) -> list[Any]:
        """The ids of these rows, in order."""
        return [item for (item,) in self._rows(*self._select(where))]

    def _select(self, where: Where) -> tuple[str, list[Any]]:
        """A SELECT of the ids of these rows, with its parameters."""
        condition, values = super()._condition(where)
        if isinstance(where, Condition):
            return f"SELECT id FROM {self._fields_table} WHERE {condition}", values
        return f"SELECT {self._key} FROM {self._rowids} WHERE {condition} ORDER BY {self._key}", values

    def _condition(self, where: Where) -> tuple[str, list[Any]]:
        if where is None:
            return super()._condition(None)
        seen, values = self._select(where)
        return f"id IN ({seen})", values

    @property
    def _key(self) -> str:
        """The id in vec0's own table of rows."""
        return "rowid" if self.id_type == INTEGER else "id"

    def _among(self, ids: IdArray) -> tuple[str, list[Any]]:
        return f"{self._key} IN (SELECT value FROM json_each(?))", [json.dumps(ids.tolist())]

    def _nearest(self, code: bytes, k: int, condition: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """For a small k, vec0 finds the k-th distance, then everything within it, and we break ties by id. Its time
        grows with k, so for a large k, or with many ties, SQLite sorts all rows instead. With a condition, SQLite
        sorts the selected rows, because vec0 confuses integer ids that are 2**31 or more apart."""
        if k <= MOST_NEIGHBORS and condition == "TRUE":
            near = f"SELECT id, distance FROM {self.table} WHERE code MATCH vec_bit(?) AND k = ?"
            found = self._rows(near + " ORDER BY distance", [code, k])
            if len(found) == k:
                found = self._rows(near + " AND distance <= ?", [code, MOST_TIES, found[-1][1]])
            if len(found) < MOST_TIES:
                return sorted(found, key=lambda row: (row[1], row[0]))[:k]
        return super()._nearest(code, k, condition, values)

    def _rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(statement, tuple(parameters)))

    @contextmanager
    def _transaction(self, *, writing: bool = False) -> Iterator[None]:
        """Writing waits for other writers before it reads. Inside a transaction of the user's it is a savepoint."""
        with self._plain_errors():
            if not writing or self.connection.in_transaction:
                with self.connection:
                    yield
                return
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Errors of SQLite about the file, other writers and names that are taken, as exceptions of Python."""
        apsw, it, disk = self._package("apsw"), self._described, f"{self._described} cannot be written: the disk"
        try:
            yield
        except apsw.FullError as error:
            raise OSError(errno.ENOSPC, f"{disk} is full ({error})") from None
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise ValueError(f"the file of {it} is no SQLite database, or it is damaged ({error})") from None
        except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError) as error:
            raise PermissionError(errno.EACCES, f"{it} cannot be written ({error})") from None
        except apsw.CantOpenError as error:
            raise OSError(errno.EIO, f"{it}: its file {self._path!r} cannot be opened ({error})") from None
        except apsw.BusyError as error:
            raise BlockingIOError(f"another process writes to {it} ({error}); try again when it has ended") from None
        except (apsw.IOError, apsw.SQLError) as error:
            if "already exists" in str(error):
                raise ValueError(f"{it} cannot be made: {error}; choose another name") from None
            if isinstance(error, apsw.SQLError) and not any(text in str(error) for text in VEC0_FAILED):
                raise
            raise OSError(errno.EIO, f"{disk} may be full ({error})") from None
