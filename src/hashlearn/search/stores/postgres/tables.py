"""What a table of codes is in PostgreSQL: made if it is missing, checked and otherwise left alone if it is there.

A table of the user's own needs an id column (integer, text, varchar or uuid) that is a key, and a code column
``bit(n)``. Comments mark what was made here: "hashlearn field" a column, "hashlearn model …" the code column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hashlearn.search.about import DIGEST, About
from hashlearn.search.ids import INTEGER, TEXT
from hashlearn.search.stores.base import NOTHING_THERE
from hashlearn.search.stores.postgres.session import Session, package

CREATE_ATTEMPTS = 4
KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index"}
NEW_IDS = {INTEGER: "bigint", TEXT: 'text COLLATE "C"'}
NEW_FIELDS = {"text": 'text COLLATE "C"', "integer": "bigint", "real": "double precision", "boolean": "boolean"}
# The types of columns that are there, without lengths, and what they hold.
ID_TYPES = {"bigint": INTEGER, "integer": INTEGER, "smallint": INTEGER}
ID_TYPES |= {"text": TEXT, "character varying": TEXT, "uuid": TEXT}
FIELD_TYPES = {
    "text": {"text", "character varying"},
    "integer": {"bigint", "integer", "smallint"},
    "real": {"double precision", "real", "numeric"},
    "boolean": {"boolean"},
}
FIELD_COMMENT = "hashlearn field"
MODEL_COMMENT = re.compile(rf"hashlearn model ({DIGEST.pattern})")


@dataclass(frozen=True)
class Column:
    """A column that is there."""

    type: str  # as PostgreSQL writes it: character varying(20)
    number: int
    never_null: bool
    has_default: bool
    identity: str  # "a" if PostgreSQL always makes the value itself
    comment: str

    @property
    def kind(self) -> str:
        """The type without its length."""
        return re.sub(r"\(.*?\)", "", self.type)


@dataclass(frozen=True)
class Table:
    """A table of codes."""

    n_bits: int
    id_type: str
    has_uuids: bool  # whether the id column is of type uuid
    fields: dict[str, str]
    columns: dict[str, str]  # all names and types
    model: str | None
    takes_new_ids: bool  # whether rows with only id, code and fields can be inserted
    left_empty: tuple[str, ...]  # the columns that are NULL in such rows

    @property
    def ordered(self) -> str:
        """What stands behind an id in ORDER BY: text goes by code points, whatever the column's collation is."""
        return ' COLLATE "C"' if self.id_type == TEXT and not self.has_uuids else ""


def opened(session: Session, asked: About | None, add_column: bool, described: str) -> Table:
    """The table, made if it is missing. Tries again if another connection makes it at the same moment."""
    errors = package("psycopg.errors")
    raced = (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject, errors.DuplicateColumn)
    for attempt in range(CREATE_ATTEMPTS):
        try:
            with session.transaction():
                return _made_or_found(session, asked, add_column, described)
        except raced:
            if attempt == CREATE_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _made_or_found(session: Session, asked: About | None, add_column: bool, described: str) -> Table:
    if session.run("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
        session.run("CREATE EXTENSION IF NOT EXISTS vector")
    text = session.quoted(*session.names["table"])
    query = "SELECT oid, relkind::text FROM pg_class WHERE oid = to_regclass(%s)"
    row = session.run(query, (text,)).fetchone()
    session.n_bits = 0 if asked is None else asked.n_bits
    if row is None:
        if asked is None:
            raise FileNotFoundError(NOTHING_THERE.format(described))
        _make(session, asked)
        row = session.run(query, (text,)).fetchone()
    oid, kind = row
    there = f"{described} is there already, and"
    if kind not in "rp":
        raise ValueError(f"{there} it is {KINDS.get(kind, 'something else')}, not a table")
    columns = _columns(session, oid)
    (id_name,), (code_name,) = session.names["id"], session.names["code"]
    if code_name not in columns and add_column and asked is not None:
        session.run("ALTER TABLE {table} ADD COLUMN {code} {type}")
        _note_model(session, asked.model)
        columns = _columns(session, oid)
    session.n_bits = _bits_of_code(columns, code_name, None if asked is None else asked.n_bits, there)
    id_type = _require_key(session, oid, columns, id_name, there)
    fields = _fields(columns, None if asked is None else asked.fields, (id_name, code_name), there)
    noted = MODEL_COMMENT.search(columns[code_name].comment)
    others = {name: column for name, column in columns.items() if name not in (id_name, code_name, *fields)}
    left_empty = tuple(name for name, column in others.items() if not column.has_default and not column.identity)
    complete = not any(columns[name].never_null for name in left_empty)
    return Table(
        n_bits=session.n_bits,
        id_type=id_type,
        has_uuids=columns[id_name].kind == "uuid",
        fields=fields,
        columns={name: column.type for name, column in columns.items()},
        model=noted and noted[1],
        takes_new_ids=complete and columns[id_name].identity != "a",
        left_empty=left_empty,
    )


def _make(session: Session, asked: About) -> None:
    fields = asked.fields or {}
    columns = [f"{session.quoted(name)} {NEW_FIELDS[kind]}".replace("%", "%%") for name, kind in fields.items()]
    key = NEW_IDS[asked.id_type or INTEGER]
    more = "".join(f", {column}" for column in columns)
    session.run("CREATE TABLE {table} ({id} {key} PRIMARY KEY, {code} {type} NOT NULL{more})", key=key, more=more)
    for name in fields:
        column = session.quoted(name).replace("%", "%%")
        session.run(f"COMMENT ON COLUMN {{table}}.{{column}} IS '{FIELD_COMMENT}'", column=column)
    _note_model(session, asked.model)


def _note_model(session: Session, model: str | None) -> None:
    if model is not None:
        session.run("COMMENT ON COLUMN {table}.{code} IS 'hashlearn model " + model + "'")


def _columns(session: Session, oid: int) -> dict[str, Column]:
    found = session.run(
        "SELECT attname, format_type(atttypid, atttypmod), attnum, attnotnull, atthasdef, attidentity::text, "
        "coalesce(col_description(attrelid, attnum), '') FROM pg_attribute "
        "WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        (oid,),
    )
    return {name: Column(*rest) for name, *rest in found.fetchall()}


def _bits_of_code(columns: Mapping[str, Column], name: str, n_bits: int | None, there: str) -> int:
    """The number of bits of the code column, which must be ``n_bits`` if that is known."""
    if name not in columns:
        kind = "bit(n)" if n_bits is None else f"bit({n_bits})"
        raise ValueError(f"{there} its column {name!r} has type none: add_column=True adds it as {kind}")
    stored = re.fullmatch(r"bit\((\d+)\)", columns[name].type)
    if not stored:
        raise ValueError(f"{there} its column {name!r} has type {columns[name].type}, not bit({n_bits or 'n'})")
    if n_bits not in (None, int(stored[1])):
        raise ValueError(f"{there.removesuffix(', and')}, with codes of {stored[1]} bits and not n_bits={n_bits}")
    return int(stored[1])


def _require_key(session: Session, oid: int, columns: Mapping[str, Column], name: str, there: str) -> str:
    """The kind of ids, if the column can hold them and is a key."""
    column = columns.get(name)
    if column is None or column.kind not in ID_TYPES:
        kind = "none" if column is None else column.type
        raise ValueError(f"{there} its column {name!r} has type {kind}, not bigint, text or uuid")
    key = session.run(
        "SELECT 1 FROM pg_index WHERE indrelid = %s AND indisunique AND indisvalid AND indimmediate "
        "AND indpred IS NULL AND indnkeyatts = 1 AND indkey[0] = %s",
        (oid, column.number),
    )
    if key.fetchone() is None or not column.never_null:
        raise ValueError(f"{there} its column {name!r} is no primary key (nor unique and NOT NULL)")
    return ID_TYPES[column.kind]


def _fields(
    columns: Mapping[str, Column], asked: Mapping[str, str] | None, taken: tuple[str, str], there: str
) -> dict[str, str]:
    """The columns that are written with a code: those made here, or those of the user's own that were asked for."""
    by_type = {kind: word for word, kinds in FIELD_TYPES.items() for kind in kinds}
    made = {name: by_type[column.kind] for name, column in columns.items() if column.comment == FIELD_COMMENT}
    if made or asked is None:
        return made
    for name, word in asked.items():
        column = columns.get(name) if name not in taken else None
        if column is None:
            names = ", ".join(repr(other) for other in columns if other not in taken) or "none"
            raise ValueError(f"{there} it has no column {name!r} for fields; its other columns are {names}")
        if column.kind not in FIELD_TYPES[word]:
            raise ValueError(f"{there} its column {name!r} has type {column.type}, and fields says {word}")
    return dict(asked)
