"""PostgreSQL with pgvector: codes as ``bit(n)``, neighbors by ``<~>``, an HNSW index with ``bit_hamming_ops``.

``bit(n)`` has the bit order of packed codes (the first bit is the highest of the first byte), so codes are sent
unchanged, in COPY's binary format. An upsert is one transaction: COPY into a temporary table, then one INSERT … ON
CONFLICT. A lost connection leaves the table as it was.

A table of the user's own is accepted if its columns fit. Its rows without a code are ignored and stay unchanged. The
model's digest is in the comment of the code column.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import unpack_bits
from hashlearn.search.interface import SearchResult, require_n_bits
from hashlearn.search.model_digest import DIGEST, checked_model
from hashlearn.search.stores.base import Encoder, Store, checked_name

ROWS_PER_BLOCK = 16_384
WIDEST_GRAPH_SEARCH = 1000  # pgvector's limit on hnsw.ef_search
COPY_START = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # signature, no flags, no extension
COPY_END = b"\xff\xff"
MOST_NAME_BYTES = 63  # PostgreSQL cuts longer names silently
CREATE_ATTEMPTS = 4
KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index"}
ID_TYPES = ("bigint", "integer", "smallint")
MODEL_COMMENT = re.compile(rf"hashlearn model ({DIGEST.pattern})")

# Two stores over one connection share a lock, because transactions belong to the connection.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


class PostgresStore(Store):
    """A table (id bigint, code bit(n)). Open it with `create`.

    >>> with PostgresStore.create("postgresql://localhost/mine", "codes", 32) as store:  # doctest: +SKIP
    ...     store.upsert(codes, ids)
    ...     store.search(query_codes, k=10)
    """

    packages, extra = ("psycopg",), "postgres"

    def __init__(
        self,
        connection: Any,
        table: Sequence[str],
        columns: tuple[str, str],
        n_bits: int,
        hasher: Encoder | None,
        model: str | None,
    ) -> None:
        super().__init__(n_bits, hasher, model)
        self.connection, self._closes = connection, False
        with _LOCKS_LOCK:
            self._lock = _LOCKS.setdefault(connection, self._lock)
        self._sql = self._package("psycopg.sql")
        new = f"hashlearn_incoming_{secrets.token_hex(8)}"
        self._names: dict[str, Sequence[str]] = {"table": table, "id": columns[:1], "code": columns[1:]}
        self._names |= {"new": (new,), "incoming": ("pg_temp", new)}
        self._table_text = self._sql.Identifier(*table).as_string(connection)
        self._described = f"table {self._table_text}"

    @classmethod
    def create(
        cls,
        connection: Any,
        table: str | tuple[str, str],
        n_bits: int,
        *,
        hasher: Encoder | None = None,
        model: str | None = None,
        columns: tuple[str, str] = ("id", "code"),
    ) -> Self:
        """Open the table; make it (and the extension ``vector``) if it is missing.

        ``connection`` is a URL, a connection string or an open psycopg connection. An open connection stays yours: the
        store works inside its transaction, and you commit, unless it is in autocommit mode. ``table`` is a name or
        (schema, name). ``columns`` are the names of id and code.
        """
        psycopg = cls._package("psycopg")
        parts = _checked_names((table,) if isinstance(table, str) else table, "table", (1, 2))
        names = _checked_names(columns, "columns", (2,))
        if names[0] == names[1]:
            raise ValueError(f"columns must be two different names, got {columns!r}")
        n_bits, model = require_n_bits(n_bits), checked_model(model)
        if not isinstance(connection, str | psycopg.Connection):
            kind = type(connection).__name__
            raise TypeError(f"connection must be a URL, a connection string or a psycopg.Connection, got {kind}")
        opened = psycopg.connect(connection, autocommit=True) if isinstance(connection, str) else connection
        store = cls(opened, parts, (names[0], names[1]), n_bits, hasher, model)
        store._closes = opened is not connection
        try:
            with store._lock:
                store._open_table()
        except BaseException:
            store.close()
            raise
        return store

    def build_index(self, *, n_links: int = 16, build_width: int = 64) -> None:
        """Make the HNSW index that ``search(..., exact=False)`` uses, if there is none."""
        with self._lock, self._transaction():
            there = self._run(
                "SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam "
                "WHERE indrelid = to_regclass(%s) AND amname = 'hnsw'",
                (self._table_text,),
            )
            if there.fetchone() is None:
                settings = f"(m = {int(n_links)}, ef_construction = {int(build_width)})"
                self._run("CREATE INDEX ON {table} USING hnsw ({code} bit_hamming_ops) WITH " + settings)

    def _count(self) -> int:
        with self._transaction():
            return int(self._run("SELECT count({code}) FROM {table}").fetchone()[0])

    def _close(self) -> None:
        """A connection of the user's stays open."""
        if self._closes:
            self.connection.close()

    def _open_table(self) -> None:
        """Make what is missing. Try again if another connection makes the table or extension at the same moment."""
        errors = self._package("psycopg.errors")
        for attempt in range(CREATE_ATTEMPTS):
            try:
                with self._transaction():
                    self._make_table()
                return
            except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject):
                if attempt == CREATE_ATTEMPTS - 1:
                    raise

    def _make_table(self) -> None:
        if self._run("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
            self._run("CREATE EXTENSION IF NOT EXISTS vector")
        there = self._run("SELECT oid, relkind::text FROM pg_class WHERE oid = to_regclass(%s)", (self._table_text,))
        row = there.fetchone()
        if row is None:
            self._run("CREATE TABLE {table} ({id} bigint PRIMARY KEY, {code} {type} NOT NULL)")
            if self.model is not None:
                self._run("COMMENT ON COLUMN {table}.{code} IS 'hashlearn model " + self.model + "'")
        else:
            self._require_fitting(*row)

    def _require_fitting(self, table: int, kind: str) -> None:
        """Refuse anything but a table, and a table whose columns, keys or model do not fit."""
        there = f"{self._described} is there already, and"
        if kind not in "rp":
            raise ValueError(f"{there} it is {KINDS.get(kind, 'something else')}, not a table")
        (name,), (code,) = self._names["id"], self._names["code"]
        found = self._run(
            "SELECT attname, format_type(atttypid, atttypmod), attnum, attnotnull, col_description(attrelid, attnum) "
            "FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
            (table,),
        )
        columns = {column: rest for column, *rest in found.fetchall()}
        for column, types in ((code, (f"bit({self.n_bits})",)), (name, ID_TYPES)):
            kind = columns[column][0] if column in columns else "none"
            if kind not in types:
                raise ValueError(f"{there} its column {column!r} has type {kind}, not {types[0]}")
        _, number, never_null, _ = columns[name]
        key = self._run(
            "SELECT 1 FROM pg_index WHERE indrelid = %s AND indisunique AND indisvalid AND indimmediate "
            "AND indpred IS NULL AND indnkeyatts = 1 AND indkey[0] = %s",
            (table, number),
        )
        if key.fetchone() is None or not never_null:
            raise ValueError(f"{there} its column {name!r} is no primary key (nor unique and NOT NULL)")
        noted = MODEL_COMMENT.search(columns[code][-1] or "")
        self._require_model(noted and noted[1])

    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        with self._transaction(), self._cursor() as cursor:
            self._run("CREATE TEMP TABLE {new} (id bigint, code {type}) ON COMMIT DROP")
            with cursor.copy(self._text("COPY {incoming} FROM STDIN (FORMAT BINARY)")) as copy:
                copy.write(COPY_START)
                for block in copy_blocks(codes, ids, self.n_bits):
                    copy.write(block)
                copy.write(COPY_END)
            self._run(
                "INSERT INTO {table} ({id}, {code}) SELECT id, code FROM {incoming} "
                "ON CONFLICT ({id}) DO UPDATE SET {code} = EXCLUDED.{code}"
            )
            self._run("DROP TABLE {incoming}")

    def _remove(self, ids: NDArray[np.int64]) -> int:
        with self._transaction():
            delete = "DELETE FROM {table} WHERE {id} = ANY(%s) AND {code} IS NOT NULL"
            return int(self._run(delete, (ids.tolist(),)).rowcount)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool) -> SearchResult:
        # Ordering by the integer distance is a full scan, because the index applies to the operator's result only.
        scan = (
            "SELECT {id}, ({code} <~> %s::{type})::int AS distance FROM {table} WHERE {code} IS NOT NULL "
            "ORDER BY distance, {id} LIMIT %s"
        )
        graph = (
            "SELECT near.id, near.distance::int FROM (SELECT {id} AS id, {code} <~> %s::{type} AS distance "
            "FROM {table} WHERE {code} IS NOT NULL ORDER BY distance LIMIT %s) AS near ORDER BY near.distance, near.id"
        )
        texts = ["".join(map(str, bits)) for bits in unpack_bits(codes, self.n_bits).tolist()] if len(codes) else []
        with self._transaction(one_state=True):
            if not exact:
                width = min(WIDEST_GRAPH_SEARCH, max(100, 2 * k))
                self._run("SELECT set_config('hnsw.ef_search', %s, true)", (str(width),))
                if k > width:
                    self._run("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
            answers = [self._run(scan if exact else graph, (text, k)).fetchall() for text in texts]
            return self._as_result(answers, k, exact)

    @contextmanager
    def _transaction(self, *, one_state: bool = False) -> Iterator[None]:
        """A transaction, or a savepoint inside a transaction of the user, which stays usable after an error.

        ``one_state``: all statements see the same rows, unless the transaction is the user's.
        """
        idle = self.connection.info.transaction_status == self._package("psycopg.pq").TransactionStatus.IDLE
        if idle and not self.connection.autocommit:
            self._run("SELECT 1")  # begins a transaction that the user will commit
        with self.connection.transaction():
            if one_state and idle and self.connection.autocommit:
                self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield

    def _cursor(self) -> Any:
        """A plain cursor, even if a connection of the user's is set to other cursors and rows."""
        return self._package("psycopg").Cursor(self.connection, row_factory=self._package("psycopg.rows").tuple_row)

    def _run(self, text: str, parameters: Sequence[Any] = ()) -> Any:
        return self._cursor().execute(self._text(text, bool(parameters)), parameters or None)

    def _text(self, text: str, has_parameters: bool = False) -> Any:
        """The statement with its names quoted. With parameters, psycopg needs percent signs doubled, also in names."""
        percent = "%%" if has_parameters else "%"
        names = {
            key: self._sql.Identifier(*(part.replace("%", percent) for part in parts))
            for key, parts in self._names.items()
        }
        return self._sql.SQL(text).format(**names, type=self._sql.SQL(f"bit({self.n_bits})"))


def copy_blocks(codes: NDArray[np.uint8], ids: NDArray[np.int64], n_bits: int) -> Iterator[bytes]:
    """Rows in the binary format of COPY: two fields, a bigint and a bit string with its length."""
    width = codes.shape[1]
    row = [("fields", ">i2"), ("id_size", ">i4"), ("id", ">i8"), ("size", ">i4"), ("n_bits", ">i4")]
    for first in range(0, len(ids), ROWS_PER_BLOCK):
        part = slice(first, first + ROWS_PER_BLOCK)
        rows = np.empty(len(ids[part]), np.dtype([*row, ("code", "u1", (width,))]))
        rows["fields"], rows["id_size"], rows["size"], rows["n_bits"] = 2, 8, 4 + width, n_bits
        rows["id"], rows["code"] = ids[part], codes[part]
        yield rows.tobytes()


def _checked_names(names: Any, argument: str, counts: tuple[int, ...]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) not in counts:
        wanted = "a name, or (schema, name)" if argument == "table" else "two names"
        raise ValueError(f"{argument} must be {wanted}, got {names!r}")
    return tuple(checked_name(name, argument, MOST_NAME_BYTES) for name in names)
