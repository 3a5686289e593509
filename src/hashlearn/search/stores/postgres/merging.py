"""From a table beside into the table of codes: new rows are inserted, rows that are there get new codes and fields.

The table beside is temporary and has the columns id, code, f0, f1, … Statements name it ``{beside}``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hashlearn.search.ids import INTEGER, TEXT, shown
from hashlearn.search.stores.postgres.session import Session, package
from hashlearn.search.stores.postgres.tables import NEW_FIELDS, Table

BESIDE_IDS = {INTEGER: "bigint", TEXT: "text"}  # with no collation, which could differ from the table's
SAME_ID = "stored.{id} = new.id"


def columns_beside(table: Table) -> str:
    """The declaration of the columns of a table beside."""
    fields = (f", f{number} {NEW_FIELDS[kind]}" for number, kind in enumerate(table.fields.values()))
    return f"(id {BESIDE_IDS[table.id_type]}, code {{type}}{''.join(fields)})"


def merge(
    session: Session, table: Table, n_rows: int, described: str, refuse_known: Callable[[Any, int], None] | None
) -> None:
    """Move all rows; ``refuse_known`` is called if ids have codes already, and None replaces these."""
    if table.has_uuids:  # two texts may be the same UUID
        session.run("ALTER TABLE {beside} ALTER COLUMN id TYPE uuid USING id::uuid, ADD UNIQUE (id)")
    if refuse_known is not None:
        _refuse(session, table, "EXISTS", "{code} IS NOT NULL AND " + SAME_ID, refuse_known)
    if table.takes_new_ids and table.left_empty:
        _warn_of_new_rows(session, table, described)
    if table.takes_new_ids:
        stored = _upsert(session, table, only_missing=refuse_known is not None)
    else:
        stored = _update(session, table)
        _refuse(session, table, "NOT EXISTS", SAME_ID, lambda item, count: _refuse_unknown(item, count, described))
    if stored != n_rows:
        # Rows that were replaced are locked, so no other writer can have stored another code.
        taken = SAME_ID + (" AND stored.{code} = new.code" if refuse_known is None else "")
        _refuse(session, table, "NOT EXISTS", taken, lambda item, count: _refuse_dropped(item, count, described))
        raise RuntimeError(
            f"{described} reports that {stored} of {n_rows} rows are stored, and nothing is kept. If another writer "
            "has changed it at the same moment, try again; if not, a trigger or a rule of the table keeps old rows"
        )


def _warn_of_new_rows(session: Session, table: Table, described: str) -> None:
    """Rows that are made here have no values in the user's other columns."""
    there = f"SELECT 1 FROM {{table}} AS stored WHERE {SAME_ID}"
    if count := session.run(f"SELECT count(*) FROM {{beside}} AS new WHERE NOT EXISTS ({there})").fetchone()[0]:
        warnings.warn(
            f"{described} gets {count} new row(s) without values in {', '.join(map(repr, table.left_empty))}; insert "
            "such rows before their codes",
            stacklevel=6,
        )


def _upsert(session: Session, table: Table, *, only_missing: bool) -> int:
    """All writers take rows in the order of ids, so that two never wait for each other."""
    names = ["{code}", *_fields(table)]
    targets, sources = ", ".join(["{id}", *names]), ", ".join(["id", "code", *_sources(table)])
    insert = f"INSERT INTO {{table}} AS stored ({targets}) SELECT {sources} FROM {{beside}} ORDER BY id{table.ordered}"
    quoted = session.quoted(*session.names["table"])
    if session.run("SELECT pg_relation_size(to_regclass(%s)) = 0", (quoted,)).fetchone()[0]:
        # Without ON CONFLICT it takes half the time.
        with suppress(package("psycopg.errors").UniqueViolation), session.transaction():
            return int(session.run(insert).rowcount)
    new = ", ".join(f"{name} = EXCLUDED.{name}" for name in names)
    condition = " WHERE stored.{code} IS NULL" if only_missing else ""
    return int(session.run(f"{insert} ON CONFLICT ({{id}}) DO UPDATE SET {new}{condition}").rowcount)


def _update(session: Session, table: Table) -> int:
    pairs = zip(["{code}", *_fields(table)], ["code", *_sources(table)], strict=True)
    values = ", ".join(f"{name} = new.{source}" for name, source in pairs)
    return int(session.run(f"UPDATE {{table}} AS stored SET {values} FROM {{beside}} AS new WHERE {SAME_ID}").rowcount)


def _refuse(session: Session, table: Table, test: str, condition: str, refuse: Callable[[Any, int], None]) -> None:
    row = session.run(
        f"SELECT new.id, count(*) OVER () FROM {{beside}} AS new WHERE {test} "
        f"(SELECT 1 FROM {{table}} AS stored WHERE {condition}) ORDER BY new.id{table.ordered} LIMIT 1"
    ).fetchone()
    if row is not None:
        refuse(*row)


def _refuse_unknown(item: Any, count: int, described: str) -> None:
    raise ValueError(
        f"ids must be in {described} already, because its other columns need values; {shown(item)} is not "
        f"({count} such id(s)). Insert these rows first"
    )


def _refuse_dropped(item: Any, count: int, described: str) -> None:
    raise ValueError(
        f"{described} did not take the row of id {shown(item)} ({count} such row(s)), and nothing is stored: a "
        "trigger or a rule of the table drops it"
    )


def _fields(table: Table) -> list[str]:
    return [f"{{field_{number}}}" for number in range(len(table.fields))]


def _sources(table: Table) -> list[str]:
    return [f"f{number}" for number in range(len(table.fields))]
