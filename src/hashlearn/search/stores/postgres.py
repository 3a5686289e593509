"""PostgreSQL with pgvector: codes as ``bit(n)``, neighbours by ``<~>``, an HNSW index with ``bit_hamming_ops``.

``bit(n)`` has the bit order of packed codes (the first bit is the highest of the first byte), so codes travel as they
are, in COPY's binary format. An upsert is one transaction: COPY into a temporary table, then one INSERT … ON CONFLICT.
A connection lost at any moment leaves the table as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import unpack_bits
from hashlearn.search.results import SearchResult
from hashlearn.search.stores.base import Encoder, Store
from hashlearn.system.packages import require

ROWS_PER_BLOCK = 16_384
WIDEST_GRAPH_SEARCH = 1000  # pgvector's limit on hnsw.ef_search
COPY_START = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # signature, no flags, no extension
COPY_END = b"\xff\xff"


class PostgresStore(Store):
    """A table (id bigint, code bit(n)). Open it with `create`.

    >>> with PostgresStore.create("postgresql://localhost/mine", "codes", 32) as store:  # doctest: +SKIP
    ...     store.upsert(codes, ids)
    ...     store.search(query_codes, k=10)
    """

    def __init__(
        self, connection: Any, table: Sequence[str], columns: tuple[str, str], n_bits: int, hasher: Encoder | None
    ) -> None:
        super().__init__(n_bits, hasher)
        self.connection, self._closes = connection, False
        self._sql = _psycopg("sql")
        self._names = {
            "table": tuple(table),
            "id": (columns[0],),
            "code": (columns[1],),
            "incoming": ("pg_temp", "hashlearn_incoming"),
        }
        self._table_text = self._sql.Identifier(*table).as_string(connection)

    @classmethod
    def create(
        cls,
        connection: Any,
        table: str | tuple[str, str],
        n_bits: int,
        *,
        hasher: Encoder | None = None,
        columns: tuple[str, str] = ("id", "code"),
    ) -> Self:
        """Open the table, and make it (and the extension ``vector``) where it is missing.

        ``connection``: a URL or connection string, or an open psycopg connection. That one stays yours: what is done
        belongs to the transaction that it is in, and unless it is in autocommit mode, committing is up to you.
        ``table``: a name, or (schema, name). ``columns``: the names of id and code.
        """
        parts = (table,) if isinstance(table, str) else tuple(table)
        if isinstance(connection, str):
            psycopg = _psycopg()
            store = cls(psycopg.connect(connection, autocommit=True), parts, columns, n_bits, hasher)
            store._closes = True
        else:
            store = cls(connection, parts, columns, n_bits, hasher)
        try:
            store._make_table()
        except BaseException:
            store.close()
            raise
        return store

    def build_index(self, *, n_links: int = 16, build_width: int = 64) -> None:
        """Make the HNSW index that ``search(..., exact=False)`` uses, if there is none."""
        there = self._run(
            "SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam "
            "WHERE indrelid = to_regclass(%s) AND amname = 'hnsw'",
            (self._table_text,),
        )
        if there.fetchone() is None:
            settings = f"(m = {int(n_links)}, ef_construction = {int(build_width)})"
            self._run("CREATE INDEX ON {table} USING hnsw ({code} bit_hamming_ops) WITH " + settings)

    def __len__(self) -> int:
        return int(self._run("SELECT count(*) FROM {table}").fetchone()[0])

    def close(self) -> None:
        """Close the connection, if it was opened here."""
        if self._closes:
            self.connection.close()

    def _make_table(self) -> None:
        with self.connection.transaction():
            if self._run("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
                self._run("CREATE EXTENSION IF NOT EXISTS vector")
            self._run("CREATE TABLE IF NOT EXISTS {table} ({id} bigint PRIMARY KEY, {code} {type} NOT NULL)")
            there = self._run(
                "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = to_regclass(%s) AND attname = %s",
                (self._table_text, *self._names["code"]),
            ).fetchone()
            kind = there[0] if there else "none"
            if kind != f"bit({self.n_bits})":
                raise ValueError(
                    f"table {self._table_text} is there already, and its column {self._names['code'][0]!r} "
                    f"has type {kind}, not bit({self.n_bits})"
                )

    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            self._run("CREATE TEMP TABLE hashlearn_incoming (id bigint, code {type}) ON COMMIT DROP")
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
        return int(self._run("DELETE FROM {table} WHERE {id} = ANY(%s)", (ids.tolist(),)).rowcount)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool) -> SearchResult:
        # Ordering by the whole-number distance is a full scan: the index knows the operator's own result only.
        scan = "SELECT {id}, ({code} <~> %s::{type})::int AS distance FROM {table} ORDER BY distance, {id} LIMIT %s"
        graph = (
            "SELECT near.id, near.distance::int FROM (SELECT {id} AS id, {code} <~> %s::{type} AS distance "
            "FROM {table} ORDER BY distance LIMIT %s) AS near ORDER BY near.distance, near.id"
        )
        texts = ["".join(map(str, bits)) for bits in unpack_bits(codes, self.n_bits).tolist()] if len(codes) else []
        with self.connection.transaction():
            if not exact:
                width = min(WIDEST_GRAPH_SEARCH, max(100, 2 * k))
                self._run("SELECT set_config('hnsw.ef_search', %s, true)", (str(width),))
                if k > width:
                    self._run("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")
            answers = [self._run(scan if exact else graph, (text, k)).fetchall() for text in texts]
        return self._as_result(answers, k, exact)

    def _run(self, text: str, parameters: Sequence[Any] = ()) -> Any:
        return self.connection.execute(self._text(text, bool(parameters)), parameters or None)

    def _text(self, text: str, has_parameters: bool = False) -> Any:
        """The statement with its names quoted. Beside parameters psycopg wants a percent sign doubled, in names too."""
        percent = "%%" if has_parameters else "%"
        names = {
            key: self._sql.Identifier(*(part.replace("%", percent) for part in parts))
            for key, parts in self._names.items()
        }
        return self._sql.SQL(text).format(**names, type=self._sql.SQL(f"bit({self.n_bits})"))


def copy_blocks(codes: NDArray[np.uint8], ids: NDArray[np.int64], n_bits: int) -> Iterator[bytes]:
    """Rows in the binary format of COPY: two fields, a bigint and a bit string that says its own length."""
    width = codes.shape[1]
    row = [("fields", ">i2"), ("id_size", ">i4"), ("id", ">i8"), ("size", ">i4"), ("n_bits", ">i4")]
    for first in range(0, len(ids), ROWS_PER_BLOCK):
        part = slice(first, first + ROWS_PER_BLOCK)
        rows = np.empty(len(ids[part]), np.dtype([*row, ("code", "u1", (width,))]))
        rows["fields"], rows["id_size"], rows["size"], rows["n_bits"] = 2, 8, 4 + width, n_bits
        rows["id"], rows["code"] = ids[part], codes[part]
        yield rows.tobytes()


def _psycopg(part: str = "") -> Any:
    return require("psycopg" + (f".{part}" if part else ""), "postgres", "a PostgreSQL store")
