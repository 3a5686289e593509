"""DuckDB: codes as ``BIT`` in a table of a database file. Every query reads the whole table, so every search is exact.

DuckDB casts bytes to ``BIT`` as they are, so codes stay padded. Every database gets the macro ``hamming_bits(a, b)``,
with which SQL compares codes without this package. The name ``hamming`` is taken: DuckDB's own compares letters.
The comment of the table is `About` as JSON.

One process at a time may open a database file. Stores of one process write one after another.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from hashlearn.search.about import About
from hashlearn.search.arrow import arrow_type, codes_to_arrow, ids_to_arrow
from hashlearn.search.ids import INTEGER, TEXT, IdArray
from hashlearn.search.stores.base import Batch, checked_name
from hashlearn.search.stores.conditions import as_literal, quoted
from hashlearn.search.stores.sql import Dialect, SqlStore

MACRO = "CREATE MACRO IF NOT EXISTS hamming_bits(a, b) AS bit_count(xor(CAST(a AS BIT), CAST(b AS BIT)))"
IN_MEMORY = ":memory:"
NEW_ROWS, ROWS_SEEN = "hashlearn_new_rows", "hashlearn_rows_seen"  # names of the rows and ids of a call

_writers: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)  # a lock for each database file


class DuckDBStore(SqlStore):
    """A table (id, code and more columns) in a database file; ":memory:" is none. Its option is ``table``.

    A table that this store did not make is refused. DuckDB ignores the case of names, and so do we.

    >>> store = DuckDBStore.open("codes.duckdb", About(32), table="codes")  # doctest: +SKIP
    """

    packages, extra = ("duckdb", "pyarrow"), "duckdb"
    signature = (8, b"DUCK")
    dialect = Dialect(
        placeholder="?",
        distance="bit_count(xor({code}, CAST(CAST(? AS BLOB) AS BIT)))",
        id_types={INTEGER: "BIGINT", TEXT: "VARCHAR"},
        field_types={"text": "VARCHAR", "integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN"},
    )

    def __init__(self, place: str | os.PathLike[str], *, table: str = "codes") -> None:
        super().__init__(place, table)
        self._path = checked_name(os.fspath(place), "place")
        self._writer = threading.RLock() if place == IN_MEMORY else _writers[os.path.realpath(place)]

    def _connect(self, asked: About | None) -> None:
        duckdb = self._package("duckdb")
        try:
            self.connection = duckdb.connect(self._path)
        except duckdb.IOException as error:
            why = "cannot be opened"
            if "lock" in str(error).lower():
                why = "is open in another process, and DuckDB lets one at a time; close it there"
            raise OSError(f"database {self._path!r} {why}: {error}") from None

    def _stored_about(self, asked: About | None) -> About | None:
        here = "WHERE lower(table_name) = lower(?) AND schema_name = current_schema()"
        here += " AND database_name = current_database()"
        columns = self._rows(f"SELECT column_name, data_type FROM duckdb_columns() {here}", [self._name])
        if not columns:
            return None
        comment = self._rows(f"SELECT comment FROM duckdb_tables() {here}", [self._name])  # none of a view
        with suppress(ValueError):
            about = About.from_json(comment[0][0] if comment else None)
            fields = ((name, self.dialect.field_types[kind]) for name, kind in (about.fields or {}).items())
            if {("id", self.dialect.id_types[str(about.id_type)]), ("code", "BIT"), *fields} <= set(columns):
                return about
        raise ValueError(f"{self._described} is there already and was not made by DuckDBStore; choose another name")

    def _make(self) -> None:
        self._rows(f"CREATE TABLE {self.table} ({self._new_columns('code BIT NOT NULL')})")
        self._rows(f"COMMENT ON TABLE {self.table} IS {as_literal(self.about.to_json())}")
        self._rows(MACRO)

    def _among(self, ids: IdArray) -> tuple[str, list[Any]]:
        """The ids are a table of Arrow until the next call, which is three times as fast as a list of parameters."""
        self.connection.register(ROWS_SEEN, self._package("pyarrow").table({"id": ids_to_arrow(ids)}))
        return f"id IN (SELECT id FROM {ROWS_SEEN})", []

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """All batches in one transaction."""
        duckdb, pyarrow = (self._package(name) for name in self.packages)
        names = ["id", "code", *map(quoted, self.fields)]
        insert = (
            f"INSERT INTO {self.table} ({', '.join(names)}) "
            f"SELECT {', '.join(['id', 'CAST(code AS BIT)', *names[2:]])} FROM {NEW_ROWS}"
        )
        with self._transaction(writing=True):
            empty = self._count() == 0  # then a plain insertion is right, and twice as fast
            if replace and not empty:
                insert += (
                    f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names[1:])}"
                )
            for batch in batches:
                fields = (pyarrow.array(batch.fields[name], arrow_type(kind)) for name, kind in self.fields.items())
                columns = [ids_to_arrow(batch.ids), codes_to_arrow(batch.codes), *fields]
                self.connection.register(NEW_ROWS, pyarrow.table(columns, ["id", "code", *self.fields]))
                try:
                    if not (replace or empty):
                        self._refuse_stored()
                    self._rows(insert)
                except duckdb.ConstraintException as error:  # an id of an earlier batch
                    raise ValueError(f"{self._described} refuses the rows: {error}") from None
                finally:
                    self.connection.unregister(NEW_ROWS)

    def _refuse_stored(self) -> None:
        known = f"SELECT min(id), count(*) FROM {self.table} WHERE id IN (SELECT id FROM {NEW_ROWS})"
        ((first, count),) = self._rows(known)
        if count:
            self._refuse_known(first, count)

    def _rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """DuckDB wants every answer to be read to its end."""
        return list(self.connection.execute(statement, list(parameters)).fetchall())

    @contextmanager
    def _transaction(self, *, writing: bool = False) -> Iterator[None]:
        """A transaction, which waits for other stores of this process if it writes. There is one inside another."""
        with self._writer if writing else nullcontext():
            self.connection.execute("BEGIN TRANSACTION")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                with suppress(self._package("duckdb").Error):  # after a commit that failed there is none to end
                    self.connection.execute("ROLLBACK")
                raise
