"""Stores by the places where they are, and the errors of their engines as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hashlearn.cli.exits import Failure, one_line, refusals

if TYPE_CHECKING:
    from hashlearn.search.stores import Store

TABLE = "codes"


def shown_place(store: str, place: str) -> str:
    """A file or folder as it is; of a connection string, where it leads, and no password."""
    from hashlearn.search.stores.postgres.session import shown_address

    return shown_address(place) if store == "postgres" else place


def table_of(store: str, name: str) -> str | tuple[str, str]:
    """A table as `Store.open` takes it: SCHEMA.NAME in PostgreSQL is a pair."""
    schema, _, alone = name.rpartition(".")
    return (schema, alone) if store == "postgres" and schema else name


@contextmanager
def errors_of(store: type[Store]) -> Iterator[None]:
    """One line for whatever a store or its packages raise."""
    try:
        with refusals():
            yield
    except click.ClickException:
        raise
    except Exception as error:
        engines = {package.partition(".")[0] for package in store.packages}
        if type(error).__module__.lstrip("_").partition(".")[0] not in engines and not isinstance(error, RuntimeError):
            raise
        raise Failure(one_line(error)) from None
