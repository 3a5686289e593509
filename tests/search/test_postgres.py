"""What only a database server has: lost connections, transactions of others, names that are not harmless, an index."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hashlearn.search.about import About
from hashlearn.search.arrow import to_arrow
from hashlearn.search.stores import PostgresStore
from tests.search.codes import engine, nearest, random_codes, split_settings

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


@pytest.mark.parametrize("name", ['"; DROP TABLE lost; --', "Mixed Case", "select", "ü", "it's", "per%cent {brace}"])
def test_names_are_quoted(postgres_url: str, name: str) -> None:
    with PostgresStore.open(postgres_url, About(33), table=name, columns=(name + "1", name + "2")) as store:
        store.upsert(OLD, np.arange(1000))
        store.build_index()
        store.build_index()
        assert store.remove([3]) == 1
        assert len(store.search(OLD[:1], 5, exact=False).indices[0]) == 5
        assert len(store) == 999


def test_a_given_connection_keeps_its_transaction(postgres_url: str, psycopg: Any, observer: Any) -> None:
    with psycopg.connect(postgres_url) as connection:
        store = PostgresStore.open(connection, About(33), table="shared")
        connection.commit()
        assert len(store) == 0  # begins a transaction, as every statement does outside autocommit
        store.upsert(OLD, np.arange(1000))
        store.upsert(OLD, np.arange(1000, 2000))
        assert (len(store), count(observer, "shared")) == (2000, 0)
        connection.rollback()
        assert len(store) == 0
        connection.rollback()
        store.upsert(OLD, np.arange(1000))  # on an idle connection
        assert count(observer, "shared") == 0
        connection.commit()
        store.close()
        assert not connection.closed
    assert count(observer, "shared") == 1000


def test_codes_are_stored_in_the_order_of_their_bits(postgres_url: str, observer: Any) -> None:
    with PostgresStore.open(postgres_url, About(12), table="order") as store:
        store.upsert(np.array([[0b10000001, 0b01000000]], np.uint8), [1])
    assert observer.execute('SELECT code::text FROM "order"').fetchone() == ("100000010100",)


def test_the_graph_is_used_and_answers_for_any_k(postgres_url: str) -> None:
    codes = random_codes(3000, 64)
    with PostgresStore.open(postgres_url, About(64), table="graph") as store:
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


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW {} AS SELECT 1::bigint AS id, B'0'::bit(33) AS code", "it is a view, not a table"),
        ("CREATE SEQUENCE {}", "it is a sequence, not a table"),
        ("CREATE TABLE {} (id date PRIMARY KEY, code bit(33))", "column 'id' has type date, not bigint, text or uuid"),
        ("CREATE TABLE {} (number bigint PRIMARY KEY, code bit(33))", "column 'id' has type none"),
        ("CREATE TABLE {} (id bigint PRIMARY KEY, code varbit(33))", "has type bit varying"),
        ("CREATE TABLE {} (id bigint, code bit(33))", "column 'id' is no primary key"),
        ("CREATE TABLE {} (id bigint UNIQUE, code bit(33))", "column 'id' is no primary key"),
        ("CREATE TABLE {} (id bigint, code bit(33), PRIMARY KEY (id, code))", "column 'id' is no primary key"),
        ("CREATE TABLE {} (id bigint PRIMARY KEY DEFERRABLE, code bit(33))", "column 'id' is no primary key"),
    ],
)
def test_a_table_of_others_is_refused(postgres_url: str, observer: Any, statement: str, message: str) -> None:
    name = f"theirs_{abs(hash(statement))}"
    observer.execute(statement.format(name))
    with pytest.raises(ValueError, match=rf'table "{name}" is there already, and .*{message}'):
        PostgresStore.open(postgres_url, About(33), table=name)


def test_rows_without_a_code_are_not_seen_and_stay(postgres_url: str, observer: Any) -> None:
    observer.execute("CREATE TABLE partly (id integer PRIMARY KEY, code bit(33))")
    observer.execute("INSERT INTO partly SELECT generate_series(1, 100)")
    with PostgresStore.open(postgres_url, About(33), table="partly") as store:
        store.upsert(OLD[:2], [5, 6])
        assert len(store) == 2
        np.testing.assert_array_equal(np.sort(store.search(OLD[:1], 2).indices), [[5, 6]])
        with pytest.raises(ValueError, match=r"from 1 to the 2 item\(s\)"):
            store.search(OLD[:1], 3)
        store.build_index()
        np.testing.assert_array_equal(np.sort(store.search(OLD[:1], 2, exact=False).indices), [[5, 6]])
        assert store.remove([1, 2, 5]) == 1
    assert count(observer, "partly") == 99


@pytest.mark.parametrize("name", ["a" * 64, "ü" * 32, "a\0b", "", 5, (), ("a", "b", "c"), ("mine", "a" * 64)])
def test_names_that_postgresql_would_change_are_refused(postgres_url: str, name: Any) -> None:
    with pytest.raises(ValueError, match=r"table must be a name"):
        PostgresStore.open(postgres_url, About(33), table=name)
    if not isinstance(name, tuple):
        with pytest.raises(ValueError, match=r"columns must be (two names|a name)"):
            PostgresStore.open(postgres_url, About(33), table="fine", columns=("id", name))


@pytest.mark.parametrize("name", ["a" * 64, "ü" * 32, "xmin", "ctid", "tableoid", "\ud800"])
def test_columns_that_postgresql_would_change_or_has_are_refused(postgres_url: str, observer: Any, name: str) -> None:
    for settings in ({"fields": {name: str}}, {"columns": (name, "code")}):
        about, options = split_settings(33, settings)
        with pytest.raises(ValueError, match=r"^(fields|columns) must (be a name|not name)"):
            PostgresStore.open(postgres_url, about, table="long_fields", **options)
    assert observer.execute("SELECT to_regclass('long_fields')").fetchone() == (None,)


def test_a_role_without_rights_is_a_permission_error(postgres_url: str, psycopg: Any, observer: Any) -> None:
    with PostgresStore.open(postgres_url, About(33), table="others_table") as store:
        store.upsert(OLD[:1], [1])
    observer.execute("DO $$ BEGIN CREATE ROLE guest; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    observer.execute("GRANT CREATE ON SCHEMA public TO guest")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET ROLE guest")
        store = PostgresStore.open(connection, About(33), table="others_table")
        source = to_arrow(OLD[:3], [1, 2, 3], 33)
        for call in (
            lambda: store.search(OLD[:1], 1),
            lambda: store.upsert(OLD[:1], [1]),
            lambda: store.count(),
            lambda: store.load(source),
            lambda: PostgresStore.open(connection, About(33), table=("pg_catalog", "mine")),
        ):
            with pytest.raises(PermissionError, match="PostgreSQL refuses it: permission denied for"):
                call()
        connection.execute("SET default_transaction_read_only = on")
        with pytest.raises(PermissionError, match="read-only transaction"):
            PostgresStore.open(connection, About(33), table="another_table")


def test_a_failed_call_leaves_the_user_s_transaction_usable(postgres_url: str, psycopg: Any) -> None:
    with psycopg.connect(postgres_url) as connection:
        store = PostgresStore.open(connection, About(33), table="failing")
        store.upsert(OLD, np.arange(1000))
        connection.execute("ALTER TABLE failing RENAME TO moved")
        for call in (lambda: store.upsert(OLD, np.arange(1000)), lambda: store.remove([1]), lambda: len(store)):
            with pytest.raises(psycopg.errors.UndefinedTable):
                call()
        for call in (lambda: store.search(OLD, 1), lambda: store.search(OLD, 1, exact=False), store.build_index):
            with pytest.raises(psycopg.errors.UndefinedTable):
                call()
        connection.execute("ALTER TABLE moved RENAME TO failing")
        assert len(store) == 1000


def test_a_given_connection_may_have_rows_and_cursors_of_its_own(postgres_url: str, psycopg: Any) -> None:
    from psycopg.rows import dict_row

    with psycopg.connect(postgres_url, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as connection:
        store = PostgresStore.open(connection, About(33), table="rows_of_dicts")
        store.upsert(OLD, np.arange(1000))
        assert len(store) == 1000
        assert store.search(OLD[:1], 1).distances.tolist() == [[0]]
    with pytest.raises(TypeError, match=r"place must be a URL, .* got NoneType"):
        PostgresStore.open(None, About(33), table="rows_of_dicts")


def test_two_stores_share_a_connection_in_two_threads(postgres_url: str, psycopg: Any) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        stores = [PostgresStore.open(connection, About(33), table=f"share_{i}") for i in range(2)]
        errors: list[Exception] = []

        def work(store: PostgresStore) -> None:
            try:
                for first in range(0, 500, 100):
                    store.upsert(OLD[:100], np.arange(100) + first)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert [len(store) for store in stores] == [500, 500]


def test_a_table_of_one_s_own_names_its_model_in_a_comment(postgres_url: str, observer: Any) -> None:
    observer.execute("CREATE TABLE mine_too (id bigint PRIMARY KEY, code bit(33))")
    observer.execute("COMMENT ON COLUMN mine_too.code IS 'bits of the images'")
    with PostgresStore.open(postgres_url, About(33, model="a" * 64), table="mine_too") as store:
        assert store.model is None
    comment = "SELECT col_description('mine_too'::regclass, 2)"
    assert observer.execute(comment).fetchone()[0] == "bits of the images"  # it is left alone
    observer.execute(f"COMMENT ON COLUMN mine_too.code IS '{About(33, model='a' * 64).to_json()}'")
    with PostgresStore.open(postgres_url, About(33), table="mine_too") as store:
        assert store.model == "a" * 64
    with pytest.raises(ValueError, match='table "mine_too" has codes of model aaaaaaaaaaaa, not of bbbbbbbbbbbb'):
        PostgresStore.open(postgres_url, About(33, model="b" * 64), table="mine_too")
