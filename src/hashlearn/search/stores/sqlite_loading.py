"""Many rows into a ``vec0`` table, so that all become visible at once, and a call that was interrupted can go on.

Each batch goes into a plain table of the same file and is committed. One transaction then moves all rows and drops that
table. Its name holds the digest of the source, so the next call for the same source finds it and goes on behind its
last row. Two processes that load the same source at once notice each other by the number of rows: one is refused. A
load that ends well drops what interrupted loads of other sources into the same table have left.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hashlearn.core.packages import require
from hashlearn.search.ids import INTEGER, TEXT
from hashlearn.search.stores.base import Batch, Batches

PREFIX = "hashlearn_load_"
VEC0_FAILED = ("Internal sqlite-vec error", "disk is full")  # what vec0 says if SQLite cannot write
TABLE_DIGITS, SOURCE_DIGITS = 12, 24  # of the digests in the name of a table beside


class Loader:
    """Loads into the table of a `SqliteVecStore`."""

    def __init__(self, store: Any) -> None:
        self.store, self.connection = store, store.connection
        table = hashlib.sha256(store._name.lower().encode()).hexdigest()
        self._prefix = f"{PREFIX}{table[:TABLE_DIGITS]}_"

    def load(self, batches: Batches, replace: bool, source: str) -> int:
        """Load all rows; return how many an earlier call had left."""
        beside = self._prefix + source[:SOURCE_DIGITS]
        with self._writing():
            fields = "".join(f", f{number}" for number in range(len(self.store.fields)))
            key = self.store._id_column
            self._run(f"CREATE TABLE IF NOT EXISTS {beside} (row INTEGER PRIMARY KEY, id {key}, code BLOB{fields})")
            resumed = done = self._rows(beside)
        try:
            for batch in batches.after(resumed):
                done += self._put(beside, batch, done)
            with self._writing():
                self._require_rows(beside, done)
                self._merge(beside, replace)
                self._run(f"DROP TABLE {beside}")
                self.drop_unfinished()
        except OSError:  # a full disk or another writer: the next call goes on
            raise
        except Exception:  # the rows are refused, also next time
            with self._writing():
                self._run(f"DROP TABLE IF EXISTS {beside}")
            raise
        return resumed

    def unfinished(self) -> dict[str, int]:
        """The tables that interrupted loads have left, and how many rows they have."""
        query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, ?) = ? ORDER BY name"
        names = [name for (name,) in self._run(query, (len(self._prefix), self._prefix))]
        return {name: self._rows(name) for name in names}

    def drop_unfinished(self) -> int:
        """Drop these tables; return how many."""
        names = list(self.unfinished())
        for name in names:
            self._run(f"DROP TABLE {name}")
        return len(names)

    def _put(self, beside: str, batch: Batch, done: int) -> int:
        rows = range(done, done + len(batch.codes))
        columns = [rows, id_values(batch, self.store.id_type), code_values(batch), *batch.fields.values()]
        with self._writing():
            self._require_rows(beside, done)
            places = ", ".join("?" * len(columns))
            self.connection.executemany(f"INSERT INTO {beside} VALUES ({places})", zip(*columns, strict=True))
        return len(rows)

    def _merge(self, beside: str, replace: bool) -> None:
        store = self.store
        key = "rowid" if store.id_type == INTEGER else "id"
        there = f"SELECT {key} FROM {store._rowids} WHERE {key} IN (SELECT id FROM {beside}) ORDER BY {key}"
        known = [item for (item,) in self._run(there)]
        if known and not replace:
            store._refuse_known(store._required_id(known[0]), len(known))
        store._delete(known)
        self._run(f"INSERT INTO {store.table} (id, code) SELECT id, vec_bit(code) FROM {beside} ORDER BY row")
        if store.fields:
            columns = ", ".join(["id", *(f"f{number}" for number in range(len(store.fields)))])
            self._run(f"INSERT INTO {store._fields_table} SELECT {columns} FROM {beside}")

    def _rows(self, beside: str) -> int:
        return int(self._run(f"SELECT coalesce(max(row) + 1, 0) FROM {beside}").get)

    def _require_rows(self, beside: str, done: int) -> None:
        """Refuse to go on if another process has changed the table beside."""
        there = self._run("SELECT 1 FROM sqlite_schema WHERE name = ?", (beside,)).get
        if there is None or self._rows(beside) != done:
            raise BlockingIOError(
                f"another process has loaded into {self.store._described} at the same moment; nothing of this call is "
                "visible. Load the source again when the other has ended"
            )

    def _run(self, text: str, values: tuple[Any, ...] = ()) -> Any:
        return self.connection.execute(text, values)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with writing(self.connection, self.store._described):
            yield


@contextmanager
def writing(connection: Any, described: str) -> Iterator[None]:
    """A transaction that waits for other writers before it reads; inside a transaction of the user's, a savepoint."""
    with plain_errors(described):
        if connection.in_transaction:
            with connection:
                yield
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def plain_errors(described: str) -> Iterator[None]:
    """Errors of SQLite about the file, other writers and names that are taken, as exceptions of Python."""
    apsw = require("apsw", "sqlite-vec", "a SqliteVecStore")
    try:
        yield
    except apsw.FullError as error:
        raise OSError(errno.ENOSPC, f"{described} cannot be written: the disk is full ({error})") from None
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise ValueError(f"the file of {described} is no SQLite database, or it is damaged ({error})") from None
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError) as error:
        raise PermissionError(errno.EACCES, f"{described} cannot be written ({error})") from None
    except apsw.CantOpenError as error:
        raise OSError(errno.EIO, f"{described}: its file cannot be opened ({error})") from None
    except (apsw.IOError, apsw.SQLError) as error:
        if isinstance(error, apsw.SQLError) and "already exists" in str(error):
            raise ValueError(f"{described} cannot be made: {error}; choose another name") from None
        if isinstance(error, apsw.SQLError) and not any(text in str(error) for text in VEC0_FAILED):
            raise
        raise OSError(errno.EIO, f"{described} cannot be written: the disk may be full ({error})") from None
    except apsw.BusyError as error:
        raise BlockingIOError(f"another process writes to {described} ({error}); try again when it has ended") from None


def id_values(batch: Batch, id_type: str) -> list[Any]:
    """The ids as SQLite stores them: integers or text."""
    if id_type == INTEGER:
        return list(batch.ids.tolist())
    if batch.column is None:
        return [str(item) for item in batch.ids.tolist()]
    values = batch.column.to_pylist()
    return values if id_type == TEXT else [_uuid_text(value.hex()) for value in values]


def code_values(batch: Batch) -> list[bytes]:
    """The bytes of each code."""
    width = batch.codes.shape[1]
    return list(batch.codes.view(f"V{width}").ravel().tolist())


def _uuid_text(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
