"""Conditions on stored columns, for ``where=``: which rows a search, a count or a removal may see.

>>> from hashlearn.search.stores import column
>>> condition = (column("lang") == "en") & (column("year") >= 2020)
>>> as_sql(condition, quoted=lambda name: f'"{name}"', placeholder="?")
('("lang" = ? AND "year" >= ?)', ['en', 2020])

Values are passed as parameters and names are quoted, so neither can change the statement. As in SQL, a comparison with
a missing value is neither true nor false, and such a row is not found; `Column.is_missing` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np

from hashlearn.search.fields import is_of, is_usable

Value = str | int | float | bool


class _Name(NamedTuple):
    """The name of a column in a condition."""

    column: str


class _Given(NamedTuple):
    """A value in a condition, and the column that it is compared with."""

    column: str
    value: Value


@dataclass(frozen=True)
class Condition:
    """What a row must fulfill, as pieces of SQL. Combine conditions with ``&``, ``|`` and ``~``."""

    pieces: tuple[str | _Name | _Given, ...]

    def __and__(self, other: Condition) -> Condition:
        return Condition(("(", *self.pieces, " AND ", *as_condition(other).pieces, ")"))

    def __or__(self, other: Condition) -> Condition:
        return Condition(("(", *self.pieces, " OR ", *as_condition(other).pieces, ")"))

    def __invert__(self) -> Condition:
        return Condition(("(NOT ", *self.pieces, ")"))

    def __bool__(self) -> bool:
        raise TypeError("conditions are joined with & and |, and negated with ~, not with and, or, not")


@dataclass(frozen=True, eq=False)
class Column:
    """A stored column. Comparisons with a value make conditions."""

    name: str

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compared("=", value)

    def __ne__(self, value: Any) -> Condition:  # type: ignore[override]
        return self._compared("<>", value)

    def __lt__(self, value: Any) -> Condition:
        return self._compared("<", value)

    def __le__(self, value: Any) -> Condition:
        return self._compared("<=", value)

    def __gt__(self, value: Any) -> Condition:
        return self._compared(">", value)

    def __ge__(self, value: Any) -> Condition:
        return self._compared(">=", value)

    def among(self, values: Iterable[Any]) -> Condition:
        """Whether the value is one of these."""
        listed = [piece for value in values for piece in (", ", _Given(self.name, _value(value, self.name)))]
        if not listed:
            return Condition(("(1 = 0 AND ", _Name(self.name), " IS NULL)"))
        return Condition((_Name(self.name), " IN (", *listed[1:], ")"))

    def is_missing(self) -> Condition:
        """Whether the row has no value."""
        return Condition((_Name(self.name), " IS NULL"))

    def _compared(self, operator: str, value: Any) -> Condition:
        return Condition((_Name(self.name), f" {operator} ", _Given(self.name, _value(value, self.name))))


def column(name: str) -> Column:
    """A stored column, to be compared: ``column("year") >= 2020``."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"column takes the name of a stored column, got {name!r}")
    return Column(name)


def as_condition(where: Any) -> Condition:
    """A condition from ``where``: one already, or a mapping from names to a value, or to a list of allowed values.

    >>> as_condition({"lang": "en"}) == (column("lang") == "en")
    True
    """
    if isinstance(where, Condition):
        return where
    if not isinstance(where, Mapping):
        raise TypeError(
            "where must be a condition such as column('year') >= 2020, or a mapping such as {'lang': 'en'}, got "
            f"{type(where).__name__}"
        )
    if not where:
        raise ValueError("where must name at least one column, got an empty mapping; leave it out to see all rows")
    return reduce(
        and_,
        (
            column(name).among(value)
            if isinstance(value, list | tuple | set | frozenset | np.ndarray)
            else column(name) == value
            for name, value in where.items()
        ),
    )


def columns_of(condition: Condition) -> set[str]:
    """The names of all columns in a condition."""
    return {piece.column for piece in condition.pieces if not isinstance(piece, str)}


def require_comparable(condition: Condition, fields: Mapping[str, str]) -> None:
    """Refuse a comparison of a column with a value of another type. ``fields`` are the types of the known columns.

    >>> require_comparable(column("year") >= "2020", {"year": "integer"})
    Traceback (most recent call last):
    TypeError: where: column 'year' holds integer values and cannot be compared with '2020'
    """
    for piece in condition.pieces:
        if isinstance(piece, _Given) and piece.column in fields and not is_of(piece.value, fields[piece.column]):
            kind = fields[piece.column]
            raise TypeError(
                f"where: column {piece.column!r} holds {kind} values and cannot be compared with {piece.value!r}"
            )


def as_sql(
    condition: Condition, *, quoted: Callable[[str], str], placeholder: str | Callable[[Value], str]
) -> tuple[str, list[Value]]:
    """The condition as SQL with its parameters. A callable ``placeholder`` writes each value into the text instead."""
    parameters: list[Value] = []

    def text(piece: str | _Name | _Given) -> str:
        if isinstance(piece, _Name):
            return quoted(piece.column)
        if isinstance(piece, str):
            return piece
        if callable(placeholder):
            return placeholder(piece.value)
        parameters.append(piece.value)
        return placeholder

    return "".join(map(text, condition.pieces)), parameters


def quoted(name: str) -> str:
    """The name of a table or column in a statement of SQLite or DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def as_literal(value: Value) -> str:
    """A value in SQL text, for engines that take no parameters.

    >>> as_literal("it's"), as_literal(True), as_literal(2)
    ("'it''s'", 'TRUE', '2')
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return repr(value) if isinstance(value, int | float) else "'" + value.replace("'", "''") + "'"


def _value(value: Any, name: str) -> Value:
    """A value of Python's own kinds; NumPy's are converted."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        raise TypeError(f"where: column {name!r} is compared with None; use column({name!r}).is_missing()")
    if not isinstance(value, str | int | float | bool):
        kind = type(value).__name__
        raise TypeError(f"where: column {name!r} must be compared with text, a number or a truth value, got {kind}")
    if not is_usable(value):
        allowed = "Unicode text without NUL, a finite number or an integer of 64 bits"
        raise ValueError(f"where: column {name!r} must be compared with {allowed}, got {value!r}")
    return value
