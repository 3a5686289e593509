"""How the tests of stores open each store of `STORES`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hashlearn.search.stores import STORES, PostgresStore, Store
from tests.search import server
from tests.search.codes import engine, split_settings

Opener = Callable[..., Store]

PLACES = {"sqlite_vec": "a.db", "duckdb": "a.duckdb"}


def opened(name: str, folder: Path, test: str, n_bits: int | None, **settings: Any) -> Store:
    """The store of a test; settings are those of About and of the store. Without ``n_bits``, what is there."""
    about, options = (None, settings) if n_bits is None else split_settings(n_bits, settings)
    if name == "postgres":
        return PostgresStore.open(server.start(), about, table=f"t_{abs(hash(test))}", **options)
    return STORES[name].open(folder / PLACES.get(name, "store"), about, **options)


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the store of a test, as often as it is called."""
    engine(*STORES[request.param].packages)
    if request.param == "postgres":
        server.start()  # skips the test if there is no server
    return partial(opened, request.param, tmp_path, request.node.name)


@pytest.fixture
def postgres_url() -> str:
    """The address of a PostgreSQL server with pgvector."""
    return server.start()
