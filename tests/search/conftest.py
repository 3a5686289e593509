"""How the tests of stores open each store of `STORES`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hashlearn.search.stores import STORES, DuckDBStore, LanceStore, PostgresStore, SqliteVecStore, Store
from tests.search import server
from tests.search.codes import engine

Opener = Callable[..., Store]

# Each opens a throw-away store in the folder of a test, and the same one if it is called again. A store that the second
# table does not name is opened by a path.
OPENERS: dict[str, Callable[..., Store]] = {
    name: lambda folder, test, *a, kind=kind, **b: kind.create(folder / "store", *a, **b)
    for name, kind in STORES.items()
} | {
    "postgres": lambda folder, test, *a, **b: PostgresStore.create(server.start(), f"t_{abs(hash(test))}", *a, **b),
    "sqlite_vec": lambda folder, test, *a, **b: SqliteVecStore.create(folder / "a.db", "codes", *a, **b),
    "lancedb": lambda folder, test, *a, **b: LanceStore.create(folder / "lance", "codes", *a, **b),
    "duckdb": lambda folder, test, *a, **b: DuckDBStore.create(folder / "a.duckdb", "codes", *a, **b),
}


@pytest.fixture(params=STORES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the store of a test, as often as it is called."""
    engine(*STORES[request.param].packages)
    if request.param == "postgres":
        server.start()  # skips the test if there is no server
    return partial(OPENERS[request.param], tmp_path, request.node.name)


@pytest.fixture
def postgres_url() -> str:
    """The address of a PostgreSQL server with pgvector."""
    return server.start()
