"""What PostgreSQL, SQLite and DuckDB share: a table (id, code, fields) that statements of SQL count, search and change.

A `Dialect` says how an engine writes what differs: parameters, lists of ids, types of columns, and the distance.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k
from hashlearn.search.about import About
from hashlearn.search.ids import IdArray, no_ids
from hashlearn.search.interface import NOWHERE, SearchResult
from hashlearn.search.stores.base import Store, Where, checked_name
from hashlearn.search.stores.conditions import Condition, as_sql, quoted


class Dialect(NamedTuple):
    """How an engine writes what differs."""

    placeholder: str  # of a parameter
    distance: str  # of the column ``{code}`` to the code of a parameter, of ``{n_bits}``
    id_types: dict[str, str]  # the types of new columns
    field_types: dict[str, str]


class SqlStore(Store):
    """A table in a database. A new one sets ``dialect`` and implements `_connect`, `_stored_about`, `_make`, `_rows`,
    `_transaction`, `_among` and `_put`."""

    dialect: ClassVar[Dialect]
    connection: Any = None
    _id, _code = "id", "code"  # the columns as they stand in statements
    _id_order = "id"  # what ORDER BY sorts ids by
    _has_code = "TRUE"  # whether a row has a code
    _quoted = staticmethod(quoted)

    def __init__(self, place: Any, table: str) -> None:
        super().__init__(place)
        self._name = checked_name(table, "table")
        self.table = quoted(table)
        self._described = f"table {self.table}"

    def _open(self, asked: About | None) -> None:
        self._connect(asked)
        with self._transaction(writing=True):
            stored = self._stored_about(asked)
            self._adopt(stored, asked)
            if stored is None:
                self._make()
            else:
                self._require_own()

    @abstractmethod
    def _connect(self, asked: About | None) -> None:
        """Set ``connection``."""

    @abstractmethod
    def _stored_about(self, asked: About | None) -> About | None:
        """What the table says of itself, or None if there is no table of this name. Another's table is refused."""

    @abstractmethod
    def _make(self) -> None:
        """Make the table, for the codes of ``about``."""

    def _require_own(self) -> None:
        """Refuse a table whose columns are not those that ``about`` says."""

    @abstractmethod
    def _rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of the answer; one row with the number of changed rows if the statement changes some."""

    @abstractmethod
    def _transaction(self, *, writing: bool = False) -> AbstractContextManager[Any]:
        """A transaction, in which reading sees one state of the table."""

    @abstractmethod
    def _among(self, ids: IdArray) -> tuple[str, list[Any]]:
        """The condition that a row has one of these ids, and its parameters."""

    def _code_values(self, codes: NDArray[np.uint8]) -> list[Any]:
        """Codes as parameters of statements: their bytes."""
        return list(np.ascontiguousarray(codes).view(f"V{self.n_bytes}").ravel().tolist())

    def _new_columns(self, *code: str) -> str:
        """The columns of a new table as CREATE TABLE takes them; ``code`` declares that of the codes."""
        fields = (f"{self._quoted(name)} {self.dialect.field_types[kind]}" for name, kind in self.fields.items())
        return ", ".join([f"{self._id} {self.dialect.id_types[self.id_type]} PRIMARY KEY NOT NULL", *code, *fields])

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()

    def _condition(self, where: Where) -> tuple[str, list[Any]]:
        """What a row must fulfill, as SQL and its parameters."""
        if where is None:
            return "TRUE", []
        if isinstance(where, Condition):
            return as_sql(where, quoted=self._quoted, placeholder=self.dialect.placeholder)
        return self._among(where)

    def _count(self, where: Where = None) -> int:
        condition, values = self._condition(where)
        query = f"SELECT count(*) FROM {self.table} WHERE {self._has_code} AND {condition}"
        return int(self._rows(query, values)[0][0])

    def _remove(self, where: Any) -> int:
        condition, values = self._condition(where)
        with self._transaction(writing=True):
            return int(self._rows(f"DELETE FROM {self.table} WHERE {self._has_code} AND {condition}", values)[0][0])

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        condition, values = self._condition(where)
        with self._transaction():
            nearest = self._nearest if exact else self._near
            answers = [nearest(code, k, condition, values) for code in self._code_values(codes)]
            return self._as_result(answers, k, whole=exact and where is None)

    def _nearest(self, code: Any, k: int, condition: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """Ids and distances of the k nearest rows, by a scan of the table."""
        distance = self.dialect.distance.format(code=self._code, n_bits=self.n_bits)
        scan = (
            f"SELECT {self._id}, {distance} AS distance FROM {self.table} "
            f"WHERE {self._has_code} AND {condition} ORDER BY distance, {self._id_order} LIMIT {k}"
        )
        return self._rows(scan, [code, *values])

    def _near(self, code: Any, k: int, condition: str, values: list[Any]) -> list[tuple[Any, ...]]:
        """The same by the approximate index of the engine, if it has one."""
        return self._nearest(code, k, condition, values)

    def _as_result(self, answers: list[list[tuple[Any, ...]]], k: int, *, whole: bool) -> SearchResult:
        """A result from lists of (id, distance), nearest first. A k that is too large is refused before allocation.

        ``whole`` means that every list must have k items.
        """
        if any(len(answer) < k for answer in answers):
            require_k(k, self._count())
            if whole:
                raise RuntimeError(f"{self._described} lost rows to another writer during the search; search again")
        indices, distances = no_ids((len(answers), k), self.id_type), np.full((len(answers), k), NOWHERE, np.int32)
        for i, answer in enumerate(answers):
            for j, (item, distance) in enumerate(answer):
                indices[i, j], distances[i, j] = self._required_id(item), distance
        return SearchResult(indices, distances)
