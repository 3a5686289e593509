"""`PostgresStore`: codes in a table of PostgreSQL, made here or the user's own.

An upsert or a load is one transaction: COPY into a temporary table, then a merge. A kill or a lost connection leaves
the table as it was. Rows of a table of the user's own without a code are ignored and stay unchanged.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import unpack_bits
from hashlearn.core.arrays import to_numpy
from hashlearn.core.checks import require_k, whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.rows import as_rows, require_finite
from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER, TEXT, IdArray, are_found, no_ids, shown
from hashlearn.search.interface import ScoredResult, SearchResult, checked_codes
from hashlearn.search.stores.base import Batch, Where, checked_name
from hashlearn.search.stores.conditions import as_literal, quoted
from hashlearn.search.stores.postgres.connection import connected, package, plain_errors, shared_lock
from hashlearn.search.stores.postgres.copy_format import blocks
from hashlearn.search.stores.postgres.tables import Table
from hashlearn.search.stores.sql import Dialect, SqlStore

WIDEST_GRAPH_SEARCH = 1000  # pgvector's limit on hnsw.ef_search
MOST_NAME_BYTES = 63  # PostgreSQL cuts longer names silently
SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")  # every table has them
MAKERS_LOCK = 7_208_531_986  # of those who make tables; any number will do
# The operator that orders by a metric, and the score that it gives.
OPERATORS = {"cosine": ("<=>", "1 - ({})"), "l2": ("<->", "-({})"), "dot": ("<#>", "-({})")}
VECTOR_TYPES = ("vector", "halfvec")
C_ORDER = ' COLLATE "C"'  # text goes by code points, whatever the collation of the column is


class PostgresStore(SqlStore):
    """A table (id, code bit(n), fields) of PostgreSQL. `open` makes it, and the extension ``vector``, if it is missing.

    The place is a URL, a connection string or an open psycopg connection. An open connection stays yours: the store
    works inside its transaction, and you commit, unless it is in autocommit mode. The options are ``table``, a name or
    (schema, name); ``columns``, the names of id and code; and ``add_column``.

    A table of your own is accepted if its id column is a key of integers, text or UUIDs, which are text here.
    ``add_column`` adds the code column if it is missing. The fields of ``about`` are then those of its columns that
    `upsert` writes, and all its columns can be used in ``where``. If the table has more columns, `upsert` changes rows
    that are there and refuses new ids, because their rows would have no values in these columns.

    >>> with PostgresStore.open("postgresql://localhost/mine", About(32), table="codes") as store:  # doctest: +SKIP
    ...     store.upsert(codes, ids)
    ...     store.search(query_codes, k=10)
    """

    packages, extra = ("psycopg",), "postgres"
    is_local = False
    dialect = Dialect(
        placeholder="%s",
        distance="({code} <~> %s::bit({n_bits}))::int",
        id_types={INTEGER: "bigint", TEXT: f"text{C_ORDER}"},
        field_types={"text": f"text{C_ORDER}", "integer": "bigint", "real": "double precision", "boolean": "boolean"},
    )

    @classmethod
    def is_at(cls, place: str) -> bool:
        """Whether the place is a URL or a connection string."""
        return ("://" in place or "=" in place) and not os.path.exists(place)

    def __init__(
        self,
        place: Any,
        *,
        table: str | tuple[str, str] = "codes",
        columns: tuple[str, str] = ("id", "code"),
        add_column: bool = False,
    ) -> None:
        parts = _checked_names((table,) if isinstance(table, str) else table, "table", (1, 2))
        names = _checked_columns(_checked_names(columns, "columns", (2,)), "columns")
        if names[0] == names[1]:
            raise ValueError(f"columns must be two different names, got {columns!r}")
        super().__init__(place, ".".join(parts))
        if not isinstance(place, str | package("psycopg").Connection):
            kind = type(place).__name__
            raise TypeError(f"place must be a URL, a connection string or a psycopg.Connection, got {kind}")
        self._plain_name = ".".join(map(quoted, parts))
        self._described, self.table = f"table {self._plain_name}", self._plain_name.replace("%", "%%")
        self._names, self._add_column = names, add_column
        self._id, self._code = map(self._quoted, names)
        self._has_code = f"{self._code} IS NOT NULL"
        self._incoming = f"pg_temp.hashlearn_incoming_{secrets.token_hex(8)}"
        self.connection = connected(place) if isinstance(place, str) else place
        self._lock = shared_lock(self.connection, self._lock)

    @staticmethod
    def _quoted(name: str) -> str:
        """A name in a statement with parameters."""
        return quoted(name).replace("%", "%%")

    def _connect(self, asked: About | None) -> None:
        for name in _checked_columns((asked and asked.fields) or (), "fields"):
            if name.lower() in map(str.lower, self._names):
                raise ValueError(f"fields must have names of their own, but {name!r} is taken")

    def _close(self) -> None:
        """A connection of the user's stays open."""
        if self.connection is not self.place:
            super()._close()

    def _stored_about(self, asked: About | None) -> About | None:
        """Two stores may make the table at the same moment, so the second one waits and looks again."""
        extension = self._rows("SELECT 1 FROM pg_extension WHERE extname = 'vector'")
        adds = asked if self._add_column else None
        if not (extension and self._read_table() and (adds is None or self._names[1] in self._table.columns)):
            self._rows("SELECT pg_advisory_xact_lock(%s)", [MAKERS_LOCK])
            if not extension:
                self._rows("CREATE EXTENSION IF NOT EXISTS vector")
            if not self._read_table():
                return None
            if adds is not None and self._names[1] not in self._table.columns:
                self._rows(f"ALTER TABLE {self.table} ADD COLUMN {self._code} bit({adds.n_bits})")
                self._describe(About(adds.n_bits, model=adds.model))
                self._read_table()
        return self._table.about(asked)

    def _make(self) -> None:
        columns = self._new_columns(f"{self._code} bit({self.n_bits}) NOT NULL")
        self._rows(f"CREATE TABLE {self.table} ({columns})")
        self._describe(self.about)
        self._read_table()

    def _describe(self, about: About) -> None:
        text = as_literal(about.to_json()).replace("%", "%%")
        self._rows(f"COMMENT ON COLUMN {self.table}.{self._code} IS {text}")

    def _read_table(self) -> bool:
        """Whether the table is there; what its columns are is in ``_table`` then."""
        table = Table.read(self._rows, self._plain_name, self._names, self._described)
        if table is not None:
            self._table = table
        return table is not None

    def _adopt(self, stored: About | None, asked: About | None) -> About:
        about = super()._adopt(stored, asked)
        has_text = self.id_type == TEXT or "text" in self.fields.values()
        encoding = self.connection.info.encoding
        if has_text and encoding != "utf-8":  # COPY's binary format has the client's encoding
            raise ValueError(f"connection must have client_encoding UTF8 for ids and fields of text, got {encoding}")
        has_uuids = stored is not None and self._table.has_uuids
        self._array = "::uuid[]" if has_uuids else ""
        self._order = C_ORDER if self.id_type == TEXT and not has_uuids else ""
        self._id_order = f"{self._id}{self._order}"
        return about

    def build_index(self, *, n_links: int = 16, build_width: int = 64) -> None:
        """Make the HNSW index that ``search(..., exact=False)`` uses, if there is none."""
        with self._lock, self._transaction(writing=True):
            there = self._rows(
                "SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam "
                "WHERE indrelid = to_regclass(%s) AND amname = 'hnsw'",
                [self._plain_name],
            )
            if not there:
                settings = f"(m = {int(n_links)}, ef_construction = {int(build_width)})"
                self._rows(f"CREATE INDEX ON {self.table} USING hnsw ({self._code} bit_hamming_ops) WITH {settings}")

    def search_rescored(
        self,
        codes: Any,
        vectors: Any,
        k: int,
        *,
        depth: int,
        vector_column: str = "embedding",
        metric: str = "cosine",
        where: Any = None,
        exact: bool = True,
        database_vectors: Any = None,
        ids: Any = None,
    ) -> ScoredResult:
        """The ``depth`` nearest by codes, of which the k best by their vectors, in one statement for each query.

        ``vectors`` are the float vectors of the queries, ``vector_column`` the column of those in the table. ``metric``
        is "cosine", "dot", or "l2", which scores by minus the Euclidean distance. A row without a vector, or of cosine
        with a zero vector, is not found. If the vectors are not in the table, give ``database_vectors`` and ``ids`` as
        to any other store.
        """
        if database_vectors is not None:
            settings = {"depth": depth, "metric": metric, "where": where, "exact": exact}
            return super().search_rescored(codes, vectors, k, database_vectors=database_vectors, ids=ids, **settings)
        codes = checked_codes(codes, self.n_bits)
        texts = vector_text(vectors, len(codes))
        arguments = {"depth": depth, "vector_column": vector_column, "metric": metric, "where": where, "exact": exact}
        statement = self.two_stage_sql(k, **arguments)
        best, scores = no_ids((len(codes), k), self.id_type), np.full((len(codes), k), -np.inf)
        with self._lock, self._transaction():
            if not exact:
                self._set_graph_width(depth, where is not None)
            for query, (code, vector) in enumerate(zip(self._code_values(codes), texts, strict=True)):
                found = self._rows(statement, {"code": code, "vector": vector})
                found = [row for row in found if row[1] == row[1]]  # the cosine with a zero vector is NaN
                for place, (item, score) in enumerate(found):
                    best[query, place], scores[query, place] = self._required_id(item), score
            if not are_found(best).all():
                require_k(k, self._count())
        return ScoredResult(best, scores)

    def two_stage_sql(
        self,
        k: int,
        *,
        depth: int,
        vector_column: str = "embedding",
        metric: str = "cosine",
        where: Any = None,
        exact: bool = True,
    ) -> str:
        """The statement that `search_rescored` executes, for use in an application.

        Its parameters are ``%(code)s``, a text of 0 and 1, and ``%(vector)s``, a text such as ``[0.5,1]``.
        """
        k = whole_number(k, "k", least=1)
        depth, seen = whole_number(depth, "depth", least=k), self._checked_where(where)
        require_choice(metric, "metric", OPERATORS)
        operator, score = OPERATORS[metric]
        vector, key, order = self._quoted(vector_column), self._id, self._id_order
        distance = f"{vector} {operator} %(vector)s::{self._vector_type(vector_column)}"
        near = f"{self._code} <~> %(code)s::bit({self.n_bits})"
        # Ordering by the integer distance is a full scan, because the index applies to the operator's result only.
        first = f"({near})::int, {order}" if exact else near
        return f"""SELECT {key}, {score.format(distance)} AS score
FROM (
    SELECT {key}, {vector} FROM {self.table}
    WHERE {self._has_code} AND {vector} IS NOT NULL{self._written(seen)}
    ORDER BY {first}
    LIMIT {depth}
) AS nearest
ORDER BY {distance}, {order}
LIMIT {k}"""

    def _written(self, where: Where) -> str:
        """A further condition with its values in the text."""
        if where is None:
            return ""
        condition, values = self._condition(where)
        literal = package("psycopg.sql").Literal
        texts = tuple(str(literal(value).as_string(self.connection)).strip() for value in values)
        return f" AND {condition % texts}".replace("%", "%%")

    def _vector_type(self, name: str) -> str:
        column = self._table.columns.get(name)
        if column is None or column.kind not in VECTOR_TYPES:
            what = "is not there" if column is None else f"has type {column.type}"
            raise ValueError(f"vector_column must be a column of vector or halfvec, but {name!r} {what}")
        return column.kind

    def _columns(self) -> Iterable[str]:
        return self._table.others

    def _count(self, where: Where = None) -> int:
        with self._transaction():
            return super()._count(where)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        with self._transaction():
            if not exact:
                self._set_graph_width(k, where is not None)
            return super()._search(codes, k, exact, where)

    def _near(self, code: Any, k: int, condition: str, values: list[Any]) -> list[tuple[Any, ...]]:
        # Ordering by the integer distance is a full scan, because the index applies to the operator's result only.
        graph = (
            f"SELECT id, distance::int FROM (SELECT {self._id} AS id, {self._code} <~> %s::bit({self.n_bits}) AS "
            f"distance FROM {self.table} WHERE {self._has_code} AND {condition} ORDER BY distance LIMIT {k}) AS near "
            f"ORDER BY near.distance, near.id{self._order}"
        )
        return self._rows(graph, [code, *values])

    def _set_graph_width(self, k: int, filtered: bool) -> None:
        width = min(WIDEST_GRAPH_SEARCH, max(100, 2 * k))
        self._rows("SELECT set_config('hnsw.ef_search', %s, true)", [str(width)])
        if k > width or filtered:
            self._rows("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")

    def _among(self, ids: IdArray) -> tuple[str, list[Any]]:
        return f"{self._id} = ANY(%s{self._array})", [ids.tolist()]

    def _code_values(self, codes: NDArray[np.uint8]) -> list[Any]:
        """Codes as PostgreSQL writes bit strings."""
        return ["".join(map(str, bits)) for bits in unpack_bits(codes, self.n_bits).tolist()] if len(codes) else []

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """Copy all rows into a temporary table and merge it, in one transaction."""
        n_rows, new_ids = 0, "bigint" if self.id_type == INTEGER else "text"  # with no collation, which could differ
        fields = [f"f{number} {self.dialect.field_types[kind]}" for number, kind in enumerate(self.fields.values())]
        columns = ", ".join([f"id {new_ids}", f"code bit({self.n_bits})", *fields])
        with self._transaction(writing=True):
            self._rows(f"CREATE TABLE {self._incoming} ({columns}) ON COMMIT DROP")
            for batch in batches:
                with self._cursor().copy(f"COPY {self._incoming} FROM STDIN (FORMAT BINARY)") as copy:
                    for block in blocks(batch, self.n_bits, self.fields):
                        copy.write(block)
                n_rows += len(batch.codes)
            if self._table.has_uuids:  # two texts may be the same UUID
                self._rows(f"ALTER TABLE {self._incoming} ALTER COLUMN id TYPE uuid USING id::uuid, ADD UNIQUE (id)")
            self._merge(n_rows, replace)
            self._rows(f"DROP TABLE {self._incoming}")

    def _merge(self, n_rows: int, replace: bool) -> None:
        """Insert the new rows; rows that are there get new codes and fields."""
        same = f"stored.{self._id} = new.id"
        empty = self._table.left_empty(self.fields)
        if not replace:
            self._refuse("EXISTS", f"stored.{self._has_code} AND {same}", self._refuse_known)
        if empty or self._table.makes_ids:
            self._refuse("NOT EXISTS", same, self._refuse_new)
        stored = self._update(same) if empty or self._table.makes_ids else self._insert(only_missing=not replace)
        if stored != n_rows:
            # Rows that were replaced are locked, so no other writer can have stored another code.
            taken = same + (f" AND stored.{self._code} = new.code" if replace else "")
            self._refuse("NOT EXISTS", taken, self._refuse_dropped)
            raise RuntimeError(
                f"{self._described} reports that {stored} of {n_rows} rows are stored, and nothing is kept. If another "
                "writer has changed it at the same moment, try again; if not, a trigger or a rule of the table keeps "
                "old rows"
            )

    def _insert(self, *, only_missing: bool) -> int:
        """All writers take rows in the order of ids, so that two never wait for each other."""
        pairs = self._pairs()
        targets, sources = ", ".join([self._id, *pairs]), ", ".join(["id", *pairs.values()])
        insert = f"INSERT INTO {self.table} AS stored ({targets}) SELECT {sources} FROM {self._incoming} "
        insert += f"ORDER BY id{self._order}"
        if self._rows("SELECT pg_relation_size(to_regclass(%s)) = 0", [self._plain_name])[0][0]:
            # Without ON CONFLICT it takes half the time.
            with suppress(package("psycopg.errors").UniqueViolation), self.connection.transaction():
                return int(self._rows(insert)[0][0])
        values = ", ".join(f"{name} = EXCLUDED.{name}" for name in pairs)
        condition = f" WHERE stored.{self._code} IS NULL" if only_missing else ""
        return int(self._rows(f"{insert} ON CONFLICT ({self._id}) DO UPDATE SET {values}{condition}")[0][0])

    def _update(self, same: str) -> int:
        values = ", ".join(f"{name} = new.{source}" for name, source in self._pairs().items())
        update = f"UPDATE {self.table} AS stored SET {values} FROM {self._incoming} AS new WHERE {same}"
        return int(self._rows(update)[0][0])

    def _pairs(self) -> dict[str, str]:
        """The columns that are written, and where their values are in the temporary table."""
        return {self._code: "code"} | {self._quoted(name): f"f{number}" for number, name in enumerate(self.fields)}

    def _refuse(self, test: str, condition: str, refuse: Callable[[Any, int], None]) -> None:
        """Call ``refuse`` with the first new id that passes a test, and how many do."""
        for item, count in self._rows(
            f"SELECT new.id, count(*) OVER () FROM {self._incoming} AS new WHERE {test} "
            f"(SELECT 1 FROM {self.table} AS stored WHERE {condition}) ORDER BY new.id{self._order} LIMIT 1"
        ):
            refuse(item, count)

    def _refuse_new(self, item: Any, count: int) -> None:
        empty = self._table.left_empty(self.fields)
        names = [*empty] if self._table.makes_ids else [self._names[0], *empty]
        values = f"({', '.join(map(self._quoted, names))}) VALUES ({', '.join(['%s'] * len(names))})"
        why = f"new rows would have no values in {', '.join(map(repr, empty))}" if empty else "PostgreSQL makes its ids"
        raise ValueError(
            f"ids must be in {self._described} already, because {why}; {shown(item)} is not ({count} such id(s)). "
            f"Insert these rows first: INSERT INTO {self.table} {values if names else 'DEFAULT VALUES'}"
        )

    def _refuse_dropped(self, item: Any, count: int) -> None:
        raise ValueError(
            f"{self._described} did not take the row of id {shown(item)} ({count} such row(s)), and nothing is stored: "
            "a trigger or a rule of the table drops it"
        )

    def _rows(self, statement: str, parameters: Any = ()) -> list[tuple[Any, ...]]:
        cursor = self._cursor().execute(statement, parameters)
        return list(cursor.fetchall()) if cursor.description else [(cursor.rowcount,)]

    def _cursor(self) -> Any:
        """A plain cursor, even if a connection of the user's is set to other cursors and rows."""
        return package("psycopg").Cursor(self.connection, row_factory=package("psycopg.rows").tuple_row)

    @contextmanager
    def _transaction(self, *, writing: bool = False) -> Iterator[None]:
        """A transaction, or a savepoint inside a transaction of the user, which stays usable after an error."""
        connection = self.connection
        is_idle = connection.info.transaction_status == package("psycopg.pq").TransactionStatus.IDLE
        with plain_errors(self._described, writing=writing):
            if is_idle and not connection.autocommit:
                self._rows("SELECT 1")  # begins a transaction that the user will commit
            with connection.transaction():
                if is_idle and connection.autocommit and not writing:
                    self._rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                yield


def vector_text(vectors: Any, n: int) -> list[str]:
    """Vectors as pgvector writes them; refused unless there is a row of finite numbers for each of ``n`` codes."""
    array = np.asarray(to_numpy(as_rows(vectors, "vectors")), np.float32)
    if array.ndim != 2 or len(array) != n:
        raise ValueError(f"vectors must have a row for each of the {n} code(s), got shape {array.shape}")
    require_finite(array, "vectors")
    return [f"[{','.join(map(str, row))}]" for row in array.tolist()]


def _checked_names(names: Any, argument: str, counts: tuple[int, ...]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) not in counts:
        right = "a name, or (schema, name)" if argument == "table" else "two names"
        raise ValueError(f"{argument} must be {right}, got {names!r}")
    return tuple(checked_name(name, argument, MOST_NAME_BYTES) for name in names)


def _checked_columns(names: Iterable[str], argument: str) -> tuple[str, ...]:
    for name in names:
        if name in SYSTEM_COLUMNS:
            raise ValueError(f"{argument} must not name {name!r}, a column that PostgreSQL adds to every table")
    return tuple(checked_name(name, argument, MOST_NAME_BYTES) for name in names)
