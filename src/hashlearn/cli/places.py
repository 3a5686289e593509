"""Stores by the places where they are, and the errors of their engines as one line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from hashlearn.cli.exits import Failure, InputError, one_line, refusals

TABLE = "codes"


def store_at(place: str) -> str | None:
    """The name of the store at a place, as its engine wrote it; None: there is none."""
    from hashlearn.search.stores import STORES

    return next((name for name, kind in STORES.items() if kind.is_at(place)), None)


@contextmanager
def store_opened(store: str, place: str, table: str | None, columns: str | None) -> Iterator[Any]:
    """The store at a place, with whatever codes it has. Errors of its engine are one line."""
    from hashlearn.search.stores import STORES

    settings = table_settings(store, table, columns)
    with engine_errors(), STORES[store].open(place, **settings) as opened:
        yield opened


def table_settings(store: str, table: str | None, columns: str | None) -> dict[str, Any]:
    """Table and columns as `Store.open` takes them: SCHEMA.NAME in PostgreSQL is a pair."""
    for option, text in (("table", table), ("columns", columns)):
        if text is not None and not has_option(store, option):
            raise InputError(f"--{option}: is not for {store}; leave it out")
    settings: dict[str, Any] = {}
    if has_option(store, "table"):
        schema, _, alone = (table or TABLE).rpartition(".")
        settings["table"] = (schema, alone) if store == "postgres" and schema else table or TABLE
    if columns is not None:
        settings["columns"] = tuple(columns.split(","))
        if len(settings["columns"]) != 2 or not all(settings["columns"]):
            raise InputError(f"--columns: must be two names, as id,code; got {columns!r}")
    return settings


def has_option(store: str, option: str) -> bool:
    """Whether a store is opened with this option."""
    from hashlearn.search.stores import STORES

    return option in inspect.signature(STORES[store]).parameters


def shown_place(store: str, place: str) -> str:
    """A file or folder as it is; of a connection string, where it leads, and no password."""
    from hashlearn.search.stores.postgres.connection import shown_address

    return shown_address(place) if store == "postgres" else place


@contextmanager
def engine_errors() -> Iterator[None]:
    """One line for whatever a store or the packages of its engine raise. Python's own errors are mistakes of ours."""
    try:
        with refusals():
            yield
    except click.ClickException:
        raise
    except Exception as error:
        if type(error).__module__ == "builtins" and not isinstance(error, RuntimeError):
            raise
        raise Failure(one_line(error)) from None
