"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hashlearn.search.stores import LanceStore, PostgresStore, SqliteVecStore, Store, UsearchStore
from tests.search import server
from tests.search.codes import engine

Opener = Callable[..., Store]
NAMES = ["postgres", "sqlite_vec", "usearch", "lancedb"]


@pytest.fixture(params=NAMES)
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the store of a test, again and again."""
    name = request.param
    if name == "postgres":
        url = request.getfixturevalue("postgres_url")
        table = f"t_{abs(hash(request.node.name))}"
        return lambda n_bits, **settings: PostgresStore.create(url, table, n_bits, **settings)
    if name == "sqlite_vec":
        engine("sqlite_vec", "apsw")
        return lambda n_bits, **settings: SqliteVecStore.create(tmp_path / "a.db", "codes", n_bits, **settings)
    if name == "usearch":
        engine("usearch.index")
        return lambda n_bits, **settings: UsearchStore.create(tmp_path / "a.usearch", n_bits, **settings)
    engine("lancedb", "pyarrow")
    return lambda n_bits, **settings: LanceStore.create(tmp_path / "lance", "codes", n_bits, **settings)


@pytest.fixture
def postgres_url() -> str:
    """The address of a PostgreSQL server with pgvector."""
    return server.start()
