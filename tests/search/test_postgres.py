"""What only a database server has: lost connections, transactions of others, names that are not harmless, an index."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hashlearn.search.stores import PostgresStore, postgres
from tests.search.codes import engine, nearest, random_codes

OLD, NEW = random_codes(1000, 33), random_codes(60_000, 33, seed=1)


@pytest.fixture
def psycopg() -> Any:
    return engine("psycopg")


@pytest.fixture
def observer(postgres_url: str, psycopg: Any) -> Iterator[Any]:
    """A second connection, to see what others see."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def count(observer: Any, table: str) -> int:
    return int(observer.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])


def assert_only_old(url: str, table: str) -> None:
    with PostgresStore.create(url, table, 33) as store:
        assert len(store) == 1000
        expected = nearest(NEW[:3], OLD, np.arange(1000), 1000)
        np.testing.assert_array_equal(store.search(NEW[:3], 1000).indices, expected[0])


def test_a_connection_lost_in_the_middle_of_copy_leaves_nothing(
    postgres_url: str, psycopg: Any, observer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore.create(postgres_url, "lost", 33)
    store.upsert(OLD, np.arange(1000))
    backend = store.connection.info.backend_pid
    blocks = [*postgres.copy_blocks(NEW, np.arange(60_000), 33)]
    assert len(blocks) > 2

    def interrupted(*arguments: Any) -> Iterator[bytes]:
        yield blocks[0]
        yield blocks[1]
        assert count(observer, "lost") == 1000  # nothing is visible to others on the way
        observer.execute("SELECT pg_terminate_backend(%s)", (backend,))
        while observer.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (backend,)).fetchone():
            time.sleep(0.01)
        yield from blocks[2:]

    monkeypatch.setattr(postgres, "copy_blocks", interrupted)
    with pytest.raises(psycopg.OperationalError):
        store.upsert(NEW, np.arange(60_000))
    monkeypatch.undo()
    store.close()
    assert_only_old(postgres_url, "lost")


def test_a_killed_process_in_the_middle_of_copy_leaves_nothing(postgres_url: str, observer: Any) -> None:
    with PostgresStore.create(postgres_url, "killed", 33) as store:
        store.upsert(OLD, np.arange(1000))
    code = f"""
import os, signal, numpy as np
from hashlearn.search.stores import PostgresStore, postgres
whole = postgres.copy_blocks
def interrupted(*arguments):
    for number, block in enumerate(whole(*arguments)):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        yield block
postgres.copy_blocks = interrupted
PostgresStore.create({postgres_url!r}, "killed", 33).upsert(np.zeros((60_000, 5), np.uint8), np.arange(60_000))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == -9, done.stderr
    assert count(observer, "killed") == 1000
    assert_only_old(postgres_url, "killed")


def test_an_error_in_the_middle_of_copy_leaves_nothing_and_the_store_usable(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresStore.create(postgres_url, "failed", 33) as store:
        store.upsert(OLD, np.arange(1000))

        def failing(*arguments: Any) -> Iterator[bytes]:
            yield next(iter(blocks(*arguments)))
            raise KeyboardInterrupt

        blocks = postgres.copy_blocks
        monkeypatch.setattr(postgres, "copy_blocks", failing)
        with pytest.raises(KeyboardInterrupt):
            store.upsert(NEW, np.arange(60_000))
        monkeypatch.undo()
        assert_only_old(postgres_url, "failed")
        store.upsert(NEW, np.arange(60_000))
        assert len(store) == 60_000


@pytest.mark.parametrize("name", ['"; DROP TABLE lost; --', "Mixed Case", "select", "ü", "it's", "per%cent {brace}"])
def test_names_are_quoted(postgres_url: str, name: str) -> None:
    with PostgresStore.create(postgres_url, name, 33, columns=(name + "1", name + "2")) as store:
        store.upsert(OLD, np.arange(1000))
        store.build_index()
        store.build_index()
        assert store.remove([3]) == 1
        assert len(store.search(OLD[:1], 5, exact=False).indices[0]) == 5
        assert len(store) == 999


def test_a_schema_and_a_table_of_the_user_s_own(postgres_url: str, observer: Any) -> None:
    observer.execute("CREATE SCHEMA mine")
    observer.execute("CREATE TABLE mine.images (id bigint PRIMARY KEY, title text DEFAULT 'none', code bit(33))")
    with PostgresStore.create(postgres_url, ("mine", "images"), 33) as store:
        store.upsert(OLD[:2], [5, 6])
    assert observer.execute("SELECT id, title FROM mine.images ORDER BY id").fetchall() == [(5, "none"), (6, "none")]
    observer.execute("CREATE TABLE mine.words (id bigint PRIMARY KEY, code text)")
    with pytest.raises(ValueError, match=r"column 'code' has type text, not bit\(33\)"):
        PostgresStore.create(postgres_url, ("mine", "words"), 33)


def test_a_given_connection_keeps_its_transaction(postgres_url: str, psycopg: Any, observer: Any) -> None:
    with psycopg.connect(postgres_url) as connection:
        store = PostgresStore.create(connection, "shared", 33)
        connection.commit()
        assert len(store) == 0  # begins a transaction, as every statement does outside autocommit
        store.upsert(OLD, np.arange(1000))
        store.upsert(OLD, np.arange(1000, 2000))
        assert (len(store), count(observer, "shared")) == (2000, 0)
        connection.rollback()
        assert len(store) == 0
        store.upsert(OLD, np.arange(1000))
        connection.commit()
        store.close()
        assert not connection.closed
    assert count(observer, "shared") == 1000


def test_codes_are_stored_in_the_order_of_their_bits(postgres_url: str, observer: Any) -> None:
    with PostgresStore.create(postgres_url, "order", 12) as store:
        store.upsert(np.array([[0b10000001, 0b01000000]], np.uint8), [1])
    assert observer.execute('SELECT code::text FROM "order"').fetchone() == ("100000010100",)


def test_the_graph_is_used_and_answers_for_any_k(postgres_url: str) -> None:
    codes = random_codes(3000, 64)
    with PostgresStore.create(postgres_url, "graph", 64) as store:
        store.upsert(codes, np.arange(3000))
        store.build_index()
        store.connection.execute("ANALYZE graph")
        plan = store.connection.execute(
            "EXPLAIN SELECT id FROM graph ORDER BY code <~> %s::bit(64) LIMIT 10", ("01" * 32,)
        ).fetchall()
        assert any("graph_code_idx" in line for (line,) in plan), plan
        found = store.search(codes[:20], 1500, exact=False)
        expected = nearest(codes[:20], codes, np.arange(3000), 1500)
    assert (found.distances <= expected[1][:, -1:]).mean() > 0.9


def test_a_hundred_thousand_rows_go_in_at_once(postgres_url: str) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (100_000, 8), dtype=np.uint8)
    with PostgresStore.create(postgres_url, "many", 64) as store:
        store.upsert(codes, np.arange(100_000))
        assert len(store) == 100_000
        expected = nearest(codes[:2], codes, np.arange(100_000), 10)
        np.testing.assert_array_equal(store.search(codes[:2], 10).indices, expected[0])
