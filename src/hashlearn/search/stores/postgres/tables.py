"""What a table of codes must be in PostgreSQL; nothing is changed here.

A table of the user's own needs an id column (integer, text, varchar or uuid) that is a key, and a code column
``bit(n)``. The comment of a code column that was made here is `About` as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER, TEXT

KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index"}
# The types of columns that are there, without lengths, and what they hold.
ID_TYPES = dict.fromkeys(("bigint", "integer", "smallint"), INTEGER)
ID_TYPES |= dict.fromkeys(("text", "character varying", "uuid"), TEXT)
FIELD_TYPES = {
    "text": {"text", "character varying"},
    "integer": {"bigint", "integer", "smallint"},
    "real": {"double precision", "real", "numeric"},
    "boolean": {"boolean"},
}
COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), attnotnull AND EXISTS (
    SELECT FROM pg_index WHERE indrelid = attrelid AND indisunique AND indisvalid AND indimmediate
    AND indpred IS NULL AND indnkeyatts = 1 AND indkey[0] = attnum
), atthasdef OR attidentity <> '', attidentity = 'a', col_description(attrelid, attnum)
FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""


class Column(NamedTuple):
    """A column that is there."""

    type: str  # as PostgreSQL writes it: character varying(20)
    is_key: bool
    has_default: bool
    is_generated: bool  # whether PostgreSQL always makes the value itself
    comment: str | None

    @property
    def kind(self) -> str:
        """The type without its length."""
        return re.sub(r"\(.*?\)", "", self.type)


class Table(NamedTuple):
    """A table that is there."""

    described: str
    id_name: str
    code_name: str
    columns: dict[str, Column]

    @classmethod
    def read(cls, rows: Callable[..., Any], name: str, own: tuple[str, ...], described: str) -> Table | None:
        """The table of this quoted name, or None; what is no table is refused. ``rows`` executes a statement, and
        ``own`` are the names of id and code."""
        kind = rows("SELECT relkind::text FROM pg_class WHERE oid = to_regclass(%s)", [name])
        if not kind:
            return None
        if kind[0][0] not in "rp":
            other = KINDS.get(kind[0][0], "something else")
            raise ValueError(f"{described} is there already, and it is {other}, not a table")
        columns = {name: Column(*rest) for name, *rest in rows(COLUMNS, [name])}
        return cls(described, own[0], own[1], columns)

    @property
    def others(self) -> dict[str, Column]:
        """The columns beside id and code."""
        return {name: column for name, column in self.columns.items() if name not in (self.id_name, self.code_name)}

    @property
    def has_uuids(self) -> bool:
        """Whether the id column is of type uuid."""
        return self.columns[self.id_name].kind == "uuid"

    @property
    def makes_ids(self) -> bool:
        """Whether PostgreSQL makes the ids of new rows itself."""
        return self.columns[self.id_name].is_generated

    def left_empty(self, fields: Mapping[str, str]) -> tuple[str, ...]:
        """The columns without a value in a new row of id, code and fields."""
        return tuple(name for name, column in self.others.items() if not column.has_default and name not in fields)

    def about(self, asked: About | None) -> About:
        """What the columns are, and what the comment of the codes says. A table that cannot hold codes is refused."""
        key, code = self.columns.get(self.id_name), self.columns.get(self.code_name)
        if key is None or key.kind not in ID_TYPES:
            self._refuse(f"its column {self.id_name!r} has type {_type(key)}, not bigint, text or uuid")
        if not key.is_key:
            self._refuse(f"its column {self.id_name!r} is no primary key (nor unique and NOT NULL)")
        bits = re.fullmatch(r"bit\((\d+)\)", _type(code))
        if code is None or bits is None:
            right = f"bit({asked.n_bits if asked else 'n'})"
            hint = f": add_column=True adds it as {right}" if code is None else f", not {right}"
            self._refuse(f"its column {self.code_name!r} has type {_type(code)}{hint}")
        about = About(int(bits[1]))
        with suppress(ValueError):  # another comment is the user's own
            about = About.from_json(code.comment)
        fields = about.fields or (asked and asked.fields) or {}
        for name, word in fields.items():
            self._require_field(name, word)
        return About(int(bits[1]), ID_TYPES[key.kind], about.model, fields)

    def _require_field(self, name: str, word: str) -> None:
        if name not in self.others:
            names = ", ".join(map(repr, self.others)) or "none"
            self._refuse(f"it has no column {name!r} for fields; its other columns are {names}")
        if self.others[name].kind not in FIELD_TYPES[word]:
            self._refuse(f"its column {name!r} has type {self.others[name].type}, and fields says {word}")

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{self.described} is there already, and {why}")


def _type(column: Column | None) -> str:
    return "none" if column is None else column.type
