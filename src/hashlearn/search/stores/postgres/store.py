"""`PostgresStore`: codes in a table of PostgreSQL, made here or the user's own.

An upsert or a load is one transaction: COPY into a temporary table, then a merge. A kill or a lost connection leaves
the table as it was. Rows of a table of the user's own without a code are ignored and stay unchanged.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k, whole_number
from hashlearn.search.about import About
from hashlearn.search.ids import TEXT, are_found, no_ids
from hashlearn.search.interface import ScoredResult, SearchResult, checked_codes
from hashlearn.search.stores.base import Batch, Store, Where, checked_name
from hashlearn.search.stores.conditions import Condition, as_sql
from hashlearn.search.stores.postgres import copying, rescoring, tables
from hashlearn.search.stores.postgres.merging import columns_beside, merge
from hashlearn.search.stores.postgres.session import (
    Session,
    connected,
    lost_connections,
    package,
    refused_condition,
    refused_rows,
    shared_lock,
)

WIDEST_GRAPH_SEARCH = 1000  # pgvector's limit on hnsw.ef_search
MOST_NAME_BYTES = 63  # PostgreSQL cuts longer names silently
SYSTEM_COLUMNS = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")  # every table has them


class PostgresStore(Store):
    """A table (id, code bit(n), fields) of PostgreSQL. It is made (and the extension ``vector``) if it is missing.

    The place is a URL, a connection string or an open psycopg connection. An open connection stays yours: the store
    works inside its transaction, and you commit, unless it is in autocommit mode. The options are ``table``, a name or
    (schema, name); ``columns``, the names of id and code; and ``add_column``.

    A table of your own is accepted if its id column is a key of integers, text or UUIDs, which are text here.
    ``add_column`` adds the code column if it is missing. The fields of ``about`` are then those of its columns that
    `upsert` writes, and all its columns can be used in ``where``.

    >>> with PostgresStore.open("postgresql://localhost/mine", About(32), table="codes") as store:  # doctest: +SKIP
    ...     store.upsert(codes, ids)
    ...     store.search(query_codes, k=10)
    """

    packages, extra = ("psycopg",), "postgres"
    is_local = False

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
        super().__init__(place)
        psycopg = package("psycopg")
        self._parts = _checked_names((table,) if isinstance(table, str) else table, "table", (1, 2))
        self._names = _checked_columns(_checked_names(columns, "columns", (2,)), "columns")
        if self._names[0] == self._names[1]:
            raise ValueError(f"columns must be two different names, got {columns!r}")
        if not isinstance(place, str | psycopg.Connection):
            kind = type(place).__name__
            raise TypeError(f"place must be a URL, a connection string or a psycopg.Connection, got {kind}")
        self._described, self._add_column = f"table {'.'.join(self._parts)!r}", add_column
        self.connection: Any = connected(place) if isinstance(place, str) else place
        self._closes = self.connection is not place
        self._lock = shared_lock(self.connection, self._lock)

    def build_index(self, *, n_links: int = 16, build_width: int = 64) -> None:
        """Make the HNSW index that ``search(..., exact=False)`` uses, if there is none."""
        with self._lock, self._session.transaction():
            there = self._run(
                "SELECT 1 FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_am ON pg_am.oid = relam "
                "WHERE indrelid = to_regclass(%s) AND amname = 'hnsw'",
                (self._session.quoted(*self._session.names["table"]),),
            )
            if there.fetchone() is None:
                settings = f"(m = {int(n_links)}, ef_construction = {int(build_width)})"
                self._run("CREATE INDEX ON {table} USING hnsw ({code} bit_hamming_ops) WITH " + settings)

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
    ) -> ScoredResult:
        """The ``depth`` nearest by codes, of which the k best by their vectors, in one statement for each query.

        ``vectors`` are the float vectors of the queries, ``vector_column`` the column of those in the table. ``metric``
        is "cosine", "dot", or "l2", which scores by minus the Euclidean distance. A row without a vector, or of cosine
        with a zero vector, is not found.
        """
        codes = checked_codes(codes, self.n_bits)
        texts = rescoring.vector_text(vectors, len(codes))
        arguments = {"depth": depth, "vector_column": vector_column, "metric": metric, "where": where, "exact": exact}
        statement = self.two_stage_sql(k, **arguments)
        ids, scores = no_ids((len(codes), k), self.id_type), np.full((len(codes), k), -np.inf)
        with self._lock, self._session.transaction(one_state=True), refused_condition(self._described):
            if not exact:
                self._set_graph_width(depth, where is not None)
            for query, (code, vector) in enumerate(zip(rescoring.code_text(codes, self.n_bits), texts, strict=True)):
                found = self._session.execute(statement, {"code": code, "vector": vector}).fetchall()
                found = [row for row in found if row[1] == row[1]]  # the cosine with a zero vector is NaN
                for place, (item, score) in enumerate(found):
                    ids[query, place], scores[query, place] = self._required_id(item), score
            if not are_found(ids).all():
                require_k(k, self._count())
        return ScoredResult(ids, scores)

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
        settings: dict[str, Any] = {"k": k, "depth": depth, "vector_column": vector_column, "metric": metric}
        piece = self._where(seen, as_text=True)[0]
        return rescoring.two_stage_sql(self._session, self._table, self.n_bits, piece, exact=exact, **settings)

    def _open(self, asked: About | None) -> None:
        for name in _checked_columns((asked and asked.fields) or (), "fields"):
            if name.lower() in map(str.lower, self._names):
                raise ValueError(f"fields must have names of their own, but {name!r} is taken")
        beside = ("pg_temp", f"hashlearn_incoming_{secrets.token_hex(8)}")
        names: dict[str, Sequence[str]] = {
            "table": self._parts,
            "id": self._names[:1],
            "code": self._names[1:],
            "beside": beside,
        }
        self._session = Session(self.connection, names)
        self._run = self._session.run
        self._described = f"table {self._session.quoted(*self._parts)}"
        self._table = found = tables.opened(self._session, asked, self._add_column, self._described)
        self._adopt(About(found.n_bits, found.id_type, found.model, found.fields), asked)
        has_text = self.id_type == TEXT or "text" in self.fields.values()
        if has_text and self.connection.info.encoding != "utf-8":  # COPY's binary format has the client's encoding
            encoding = self.connection.info.encoding
            raise ValueError(f"connection must have client_encoding UTF8 for ids and fields of text, got {encoding}")
        self._session.names |= {f"field_{number}": (name,) for number, name in enumerate(found.fields)}

    def _columns(self) -> list[str]:
        taken = {self._session.names["id"][0], self._session.names["code"][0]}
        return [name for name in self._table.columns if name not in taken]

    def _count(self, where: Where = None) -> int:
        piece, values = self._where(where)
        with self._session.transaction(), refused_condition(self._described):
            query = "SELECT count({code}) FROM {table} WHERE TRUE{where}"
            return int(self._run(query, values, where=piece).fetchone()[0])

    def _close(self) -> None:
        """A connection of the user's stays open."""
        if self._closes:
            self.connection.close()

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """Copy all rows into a temporary table and merge it, in one transaction."""
        session, n_rows = self._session, 0
        with lost_connections(self._described), refused_rows(self._described), session.transaction():
            self._run("CREATE TABLE {beside} " + columns_beside(self._table) + " ON COMMIT DROP")
            for batch in batches:
                with session.copying() as copy:
                    copying.write_rows(copy, batch, self.n_bits, self.fields)
                n_rows += len(batch.codes)
            merge(session, self._table, n_rows, self._described, None if replace else self._refuse_known)
            self._run("DROP TABLE {beside}")

    def _remove(self, where: Any) -> int:
        piece, values = self._where(where)
        with self._session.transaction(), refused_condition(self._described):
            delete = "DELETE FROM {table} WHERE {code} IS NOT NULL{where}"
            return int(self._run(delete, values, where=piece).rowcount)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        # Ordering by the integer distance is a full scan, because the index applies to the operator's result only.
        scan = (
            "SELECT {id}, ({code} <~> %s::{type})::int AS distance FROM {table} WHERE {code} IS NOT NULL{where} "
            "ORDER BY distance, {id}{ordered} LIMIT %s"
        )
        graph = (
            "SELECT id, distance::int FROM (SELECT {id} AS id, {code} <~> %s::{type} AS distance FROM {table} WHERE "
            "{code} IS NOT NULL{where} ORDER BY distance LIMIT %s) AS near ORDER BY near.distance, near.id{ordered}"
        )
        piece, values = self._where(where)
        with self._session.transaction(one_state=True), refused_condition(self._described):
            if not exact:
                self._set_graph_width(k, where is not None)
            answers = [
                self._run(
                    scan if exact else graph, (text, *values, k), where=piece, ordered=self._table.ordered
                ).fetchall()
                for text in rescoring.code_text(codes, self.n_bits)
            ]
            return self._as_result(answers, k, whole=exact and where is None)

    def _set_graph_width(self, k: int, filtered: bool) -> None:
        width = min(WIDEST_GRAPH_SEARCH, max(100, 2 * k))
        self._run("SELECT set_config('hnsw.ef_search', %s, true)", (str(width),))
        if k > width or filtered:
            self._run("SELECT set_config('hnsw.iterative_scan', 'strict_order', true)")

    def _where(self, where: Where, *, as_text: bool = False) -> tuple[str, list[Any]]:
        """A piece of SQL behind other conditions, and its parameters; ``as_text``: with the values in the text."""
        if where is None:
            return "", []
        literal = package("psycopg.sql").Literal

        def written(value: Any) -> str:
            return str(literal(value).as_string(self.connection)).strip().replace("%", "%%")

        def quoted(name: str) -> str:
            return self._session.quoted(name).replace("%", "%%")

        if isinstance(where, Condition):
            text, values = as_sql(where, quoted=quoted, placeholder=written if as_text else "%s")
            return f" AND {text}", list(values)
        listed = where.tolist()
        key, kind = quoted(self._session.names["id"][0]), "::uuid[]" if self._table.has_uuids else ""
        return f" AND {key} = ANY({written(listed) if as_text else '%s'}{kind})", [] if as_text else [listed]


def _checked_names(names: Any, argument: str, counts: tuple[int, ...]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or len(names) not in counts:
        wanted = "a name, or (schema, name)" if argument == "table" else "two names"
        raise ValueError(f"{argument} must be {wanted}, got {names!r}")
    return tuple(checked_name(name, argument, MOST_NAME_BYTES) for name in names)


def _checked_columns(names: Iterable[str], argument: str) -> tuple[str, ...]:
    for name in names:
        if name in SYSTEM_COLUMNS:
            raise ValueError(f"{argument} must not name {name!r}, a column that PostgreSQL adds to every table")
    return tuple(checked_name(name, argument, MOST_NAME_BYTES) for name in names)
