"""DuckDB: codes as ``BIT`` in a table of a database file. Every query reads the whole table, so every search is exact.

DuckDB casts bytes to ``BIT`` as they are, so codes stay padded. Every database gets the macro ``hamming_bits(a, b)``,
with which SQL compares codes without this package. The name ``hamming`` is taken: DuckDB's own compares letters.
The comment of the table holds the number of bits and the digest of the model.

One process at a time may open a database file. Stores of one process write one after another.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.about import About
from hashlearn.search.arrow import arrow_type, codes_to_arrow, ids_to_arrow
from hashlearn.search.ids import INTEGER, TEXT, IdArray
from hashlearn.search.interface import SearchResult
from hashlearn.search.stores.base import Batch, Store, Where, checked_name
from hashlearn.search.stores.conditions import Condition, as_literal, as_sql, quoted

MACRO = "CREATE MACRO IF NOT EXISTS hamming_bits(a, b) AS bit_count(xor(CAST(a AS BIT), CAST(b AS BIT)))"
IN_MEMORY = ":memory:"
MARK = "hashlearn "  # begins the comment of a table of ours
ID_COLUMNS = {INTEGER: "BIGINT", TEXT: "VARCHAR"}
ID_TYPES = {"BIGINT": INTEGER, "VARCHAR": TEXT, "UUID": TEXT}  # of columns that are there
FIELD_COLUMNS = {"text": "VARCHAR", "integer": "BIGINT", "real": "DOUBLE", "boolean": "BOOLEAN"}
GIVEN = "hashlearn_given"  # the name of the rows or ids of a call in its statements

_writers: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)  # a lock for each database file


class DuckDBStore(Store):
    """A table (id, code and more columns) in a database file; ":memory:" is none. Its option is ``table``.

    A table that this store did not make is refused. DuckDB ignores the case of names, and so do we.

    >>> store = DuckDBStore.open("codes.duckdb", About(32), table="codes")  # doctest: +SKIP
    """

    packages, extra = ("duckdb", "pyarrow"), "duckdb"
    signature = (8, b"DUCK")

    def __init__(self, place: str | os.PathLike[str], *, table: str = "codes") -> None:
        super().__init__(place)
        self._path, self._name = checked_name(os.fspath(place), "place"), checked_name(table, "table")
        self.connection: Any = None
        self.table = quoted(table)
        self._described = f"table {self.table}"
        self._writer = threading.RLock() if place == IN_MEMORY else _writers[os.path.realpath(place)]

    def _open(self, asked: About | None) -> None:
        duckdb = self._package("duckdb")
        try:
            self.connection = duckdb.connect(self._path)
        except duckdb.IOException as error:
            raise OSError(_why(self._path, str(error))) from None
        with self._writing():
            self._make_table(asked)

    def _make_table(self, asked: About | None) -> None:
        run = self.connection.execute
        same = "lower({}) = lower(?) AND schema_name = current_schema() AND database_name = current_database()"
        there = run(f"SELECT comment FROM duckdb_tables() WHERE {same.format('table_name')}", [self._name]).fetchall()
        if not there:
            if run(f"SELECT 1 FROM duckdb_views() WHERE {same.format('view_name')}", [self._name]).fetchall():
                self._refuse_foreign()
            self._adopt(None, asked)
            self._kind = ID_COLUMNS[self.id_type]
            columns = "".join(f", {quoted(name)} {FIELD_COLUMNS[word]}" for name, word in self.fields.items())
            run(f"CREATE TABLE {self.table} (id {self._kind} PRIMARY KEY, code BIT NOT NULL{columns})")
            run(f"COMMENT ON TABLE {self.table} IS {as_literal(MARK + self.about.to_json())}")
            run(MACRO)
            return
        stored = self._stored_about(there[0][0])
        where = same.format("table_name")
        described = run(f"SELECT column_name, data_type FROM duckdb_columns() WHERE {where}", [self._name]).fetchall()
        field_types = {kind: word for word, kind in FIELD_COLUMNS.items()}
        kinds = dict(described)
        if kinds.get("id") not in ID_TYPES or kinds.get("code") != "BIT":
            self._refuse_foreign()
        self._kind = kinds.pop("id")  # the type of the id column
        fields = {name: field_types[kind] for name, kind in kinds.items() if kind in field_types}
        self._adopt(replace(stored, id_type=ID_TYPES[self._kind], fields=fields), asked)

    def _stored_about(self, comment: str | None) -> About:
        """What the comment of a table of ours says."""
        try:
            return About.from_json((comment or "").removeprefix(MARK))
        except ValueError:
            self._refuse_foreign()

    def _refuse_foreign(self) -> NoReturn:
        raise ValueError(f"{self._described} is there already and was not made by DuckDBStore; choose another name")

    def _count(self, where: Where = None) -> int:
        with self._seen(where) as (condition, parameters):
            return self._number(f"SELECT count(*) FROM {self.table}{condition}", parameters)

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """All batches in one transaction."""
        names = [quoted(name) for name in ("id", "code", *self.fields)]
        insert = (
            f"INSERT INTO {self.table} ({', '.join(names)}) "
            f"SELECT {', '.join([f'CAST(id AS {self._kind})', 'CAST(code AS BIT)', *names[2:]])} FROM {GIVEN}"
        )
        replacing = f" ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names[1:])}"
        with self._writing():
            empty = self._count() == 0  # then a plain insertion is right, and twice as fast
            for batch in batches:
                columns = {"code": codes_to_arrow(batch.codes), **self._field_columns(batch)}
                with self._given(batch.ids, columns):
                    if not (replace or empty):
                        self._refuse_stored()
                    try:
                        self.connection.execute(insert + (replacing if replace and not empty else ""))
                    except self._package("duckdb").ConstraintException as error:  # an id of an earlier batch
                        raise ValueError(f"{self._described} refuses the rows: {error}") from None

    def _refuse_stored(self) -> None:
        known = f"SELECT min(id), count(*) FROM {self.table} WHERE id IN (SELECT CAST(id AS {self._kind}) FROM {GIVEN})"
        ((first, count),) = self.connection.execute(known).fetchall()
        if count:
            self._refuse_known(first, count)

    def _remove(self, where: Any) -> int:
        with self._writing(), self._seen(where) as (condition, parameters):
            return self._number(f"DELETE FROM {self.table}{condition}", parameters)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        with self._transaction(), self._seen(where) as (condition, parameters):
            nearest = (
                f"SELECT id, bit_count(xor(code, CAST(CAST(? AS BLOB) AS BIT))) FROM {self.table}{condition} "
                "ORDER BY 2, 1 LIMIT ?"
            )
            answers = [self.connection.execute(nearest, [code.tobytes(), *parameters, k]).fetchall() for code in codes]
            return self._as_result(answers, k, whole=where is None)

    def _number(self, statement: str, parameters: list[Any]) -> int:
        """The number of rows that a statement counts or changes. DuckDB wants every result to be read to its end."""
        return int(self.connection.execute(statement, parameters).fetchall()[0][0])

    @contextmanager
    def _seen(self, where: Where) -> Iterator[tuple[str, list[Any]]]:
        """The end of a statement that sees these rows only, and its parameters."""
        if where is None:
            yield "", []
        elif isinstance(where, Condition):
            text, parameters = as_sql(where, quoted=quoted, placeholder="?")
            yield f" WHERE {text}", list(parameters)
        else:
            with self._given(where, {}):
                yield f" WHERE id IN (SELECT CAST(id AS {self._kind}) FROM {GIVEN})", []

    @contextmanager
    def _given(self, ids: IdArray, columns: dict[str, Any]) -> Iterator[None]:
        """Make ids and columns readable for statements as a table."""
        pyarrow = self._package("pyarrow")
        self.connection.register(GIVEN, pyarrow.table({"id": ids_to_arrow(ids), **columns}))
        try:
            yield
        finally:
            self.connection.unregister(GIVEN)

    def _field_columns(self, batch: Batch) -> dict[str, Any]:
        pyarrow = self._package("pyarrow")
        return {name: pyarrow.array(values, arrow_type(self.fields[name])) for name, values in batch.fields.items()}

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that waits for other stores of this process."""
        with self._writer, self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN TRANSACTION")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            with suppress(self._package("duckdb").Error):  # after a commit that failed there is none to end
                self.connection.execute("ROLLBACK")
            raise


def _why(path: str, error: str) -> str:
    """Why a database could not be opened."""
    if "lock" in error.lower():
        return f"database {path!r} is open in another process, and DuckDB lets one at a time; close it there: {error}"
    return f"database {path!r} cannot be opened: {error}"
