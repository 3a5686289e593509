"""Bulk loading: all rows of a file or none, again after an interruption, and refusals before anything is written."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search import arrow
from hashlearn.search.about import About
from hashlearn.search.arrow import to_arrow
from hashlearn.search.stores import PostgresStore, SqliteVecStore, Store, export_codes, sqlite_vec
from tests.search import server
from tests.search.codes import engine, random_codes
from tests.search.conftest import Opener

N, BATCH = 1000, 300
CODES = random_codes(N, 33)
IDS: dict[str, list[Any]] = {
    "int64": list(range(N, 0, -1)),
    "string": [f"it's {number}\n" for number in range(N)],
}
FIELDS: dict[str, list[Any]] = {
    "lang": [("en", "dé", None)[row % 3] for row in range(N)],
    "year": [None if row % 7 == 0 else row for row in range(N)],
    "score": [row / 8 for row in range(N)],
    "open": [None if row % 5 == 0 else row % 2 == 0 for row in range(N)],
}
SQL = ("postgres", "sqlite_vec")
Place = Callable[[], tuple[Any, ...]]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "BATCH_ROWS", BATCH)


@pytest.fixture(params=SQL)
def name(request: pytest.FixtureRequest) -> str:
    engine("pyarrow.parquet", "psycopg" if request.param == "postgres" else "apsw")
    return str(request.param)


@pytest.fixture
def place(name: str, tmp_path: Path) -> tuple[Any, ...]:
    """Where the store of the test is."""
    return (server.start(), f"load_{abs(hash(str(tmp_path)))}") if name == "postgres" else (tmp_path / "a.db", "codes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = to_arrow(CODES, IDS["string"], 33, model="a" * 64, fields=FIELDS)
    engine("pyarrow.parquet").write_table(table, tmp_path / "codes.parquet")
    return tmp_path / "codes.parquet"


def opened(name: str, place: tuple[Any, ...], n_bits: int = 33, **settings: Any) -> Any:
    return {"postgres": PostgresStore, "sqlite_vec": SqliteVecStore}[name].open(
        place[0], About(n_bits, **settings), table=place[1]
    )


def assert_whole(store: Store, ids: list[Any]) -> None:
    """Every id has its own code and its own fields, once."""
    assert len(store) == N
    distances = np.bitwise_count(CODES[:, None] ^ CODES[:8]).sum(axis=2)
    for query in range(8):
        ranked = sorted(range(N), key=lambda row: (distances[row, query], ids[row]))[:20]
        assert store.search(CODES[query : query + 1], 20).indices[0].tolist() == [ids[row] for row in ranked]
    if store.fields:
        for where, rows in (({"lang": "dé"}, range(1, N, 3)), ({"year": 8}, [8]), ({"score": 0.5}, [4])):
            assert store.count(where) == len(rows)
            found = store.search(CODES[:1], len(rows), where=where)
            assert set(found.indices[0].tolist()) == {ids[row] for row in rows}
        assert store.count({"open": True}) == sum(value is True for value in FIELDS["open"])


@pytest.mark.parametrize("kind", IDS)
def test_a_file_and_a_table_become_a_store(name: str, place: Any, kind: str, tmp_path: Path) -> None:
    path, told = tmp_path / "codes.parquet", []
    table = to_arrow(CODES, IDS[kind], 33, model="a" * 64, fields=FIELDS)
    engine("pyarrow.parquet").write_table(table, path, row_group_size=170)
    done = export_codes(path, name, place[0], table=place[1], progress=told.append)
    assert done == N
    assert [(step.done, step.total) for step in told][-1] == (N, N)
    assert len(told) >= N // BATCH
    with opened(name, place) as store:
        assert (store.id_type, store.model, list(store.fields)) == (kind, "a" * 64, list(FIELDS))
        assert_whole(store, IDS[kind])
        assert store.remove(IDS[kind][:N:2]) == N // 2
        assert store.load(table.slice(0, N)) == N  # half of them replace rows
        assert_whole(store, IDS[kind])
    with pytest.raises(ValueError, match=r"ids must be new, but .* is in .* already \("):
        export_codes(path, name, place[0], table=place[1], duplicates="refuse")


class Stop(Exception):
    """Raised in the middle of a load."""


def test_a_load_that_ends_early_leaves_the_store_as_it_was(open_store: Opener, path: Path) -> None:
    def stop(step: Any) -> None:
        if step.done >= 2 * BATCH:
            raise Stop

    with open_store(33, id_type="string") as store:
        store.upsert(CODES[:2] & 0, IDS["string"][:2])
        with pytest.raises((Stop, RuntimeError)):  # LanceDB has an error of its own
            store.load(path, progress=stop)
        assert len(store) == 2
        assert store.search(CODES[:1] & 0, 2).distances.tolist() == [[0, 0]]
        assert store.load(path) == N
        assert_whole(store, IDS["string"])


KILLED = """
import os, signal, sys
from hashlearn.search import arrow
arrow.BATCH_ROWS = 300
from hashlearn.search.stores import export_codes
def kill(step):
    if step.done >= 600:
        os.kill(os.getpid(), signal.SIGKILL)
export_codes(*sys.argv[1:4], table=sys.argv[4], progress=kill, fields=[])
"""


def test_a_kill_leaves_the_store_as_it_was(name: str, place: Any, path: Path) -> None:
    with opened(name, place, id_type="string", model="a" * 64) as store:
        store.upsert(CODES[:2] & 0, IDS["string"][:2])
    command = [sys.executable, "-W", "ignore", "-c", KILLED, str(path), name, *map(str, place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == -9, done.stderr
    with opened(name, place) as store:
        assert len(store) == 2
        assert store.search(CODES[:1] & 0, 2).distances.tolist() == [[0, 0]]
        assert store.load(path) == N
        assert_whole(store, IDS["string"])


def test_two_loads_at_once(name: str, place: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL stores one after the other; SQLite refuses the second."""
    monkeypatch.setattr(sqlite_vec, "BUSY_MS", 10)
    first, refused = to_arrow(CODES[:10], [f"first {number}" for number in range(10)], 33), []

    def second(step: Any) -> None:
        if step.done == BATCH:
            try:
                export_codes(first, name, place[0], table=place[1])
            except BlockingIOError as error:
                refused.append(str(error))

    export_codes(path, name, place[0], table=place[1], progress=second, fields=[])
    with opened(name, place) as store:
        if name == "postgres":
            assert (len(store), refused) == (N + 10, [])
            store.remove([f"first {number}" for number in range(10)])
        else:
            assert re.search(r"another process writes to table .*; try again when it has ended", refused[0])
        assert_whole(store, IDS["string"])


@pytest.mark.parametrize("kind", IDS)
def test_an_id_twice_in_the_source_is_refused_by_name(name: str, place: Any, kind: str) -> None:
    ids = IDS[kind]
    table = to_arrow(CODES, ids, 33)
    twice = engine("pyarrow").concat_tables([table, table.slice(7, 1)])
    with opened(name, place, id_type=kind) as store:
        with pytest.raises(ValueError, match=f"distinct, got {re.escape(repr(ids[7]))} at row 7 and again at row {N}"):
            store.load(twice)
        assert len(store) == 0


def test_ids_of_equal_hash_are_different_ids(name: str, place: Any) -> None:
    """Python's hash of 2**61 - 1 is 0."""
    with opened(name, place) as store:
        assert store.load(to_arrow(CODES[:4], [0, 2**61 - 1, 1, 2**61], 33)) == len(store) == 4


def test_sources_that_do_not_fit_are_refused(name: str, place: Any, path: Path, tmp_path: Path) -> None:
    pa = engine("pyarrow")
    good = to_arrow(CODES[:3], ["a", "b", "c"], 33, model="a" * 64, fields={"year": [1, 2, 3]})
    with opened(name, place, id_type="string", fields={"year": int}, model="a" * 64) as store:
        for source, error, message in [
            (to_arrow(CODES[:3] & 0, ["a", "b", "c"], 40), ValueError, "have codes of 40 bits, and .* of 33"),
            (to_arrow(CODES[:3], [1, 2, 3], 33), TypeError, "have ids that are integers, and .* ids that are text"),
            (to_arrow(CODES[:3], ["a", "b", "c"], 33), ValueError, "have no column 'year' of integer"),
            (
                good.replace_schema_metadata(
                    {b"hashlearn": good.schema.metadata[b"hashlearn"].replace(b"a" * 64, b"b" * 64)}
                ),
                ValueError,
                "codes of model bbbbbbbbbbbb, not of aaaaaaaaaaaa",
            ),
            (pa.table({"id": [1]}), ValueError, "must have columns id and code"),
            (
                CODES,
                TypeError,
                "source must be a Parquet file of codes, a pyarrow.Table or RecordBatchReader; got ndarray",
            ),
            (tmp_path / "none.parquet", FileNotFoundError, "none.parquet"),
        ]:
            with pytest.raises(error, match=message):
                store.load(source)
        (tmp_path / "text.parquet").write_text("no Parquet")
        with pytest.raises(ValueError, match=r"text\.parquet: cannot be read as Parquet"):
            store.load(tmp_path / "text.parquet")
        for bad in ("", "a\0b", "x" * 2001):
            with pytest.raises(ValueError, match="ids must"):
                store.load(good.set_column(0, "id", pa.array(["a", "b", bad])))
        with pytest.raises(ValueError, match="the id column has 1 row"):
            store.load(good.set_column(0, "id", pa.array(["a", None, "b"])))
        with pytest.raises(ValueError, match=r"fields\['year'\] must be integer .* 9223372036854775808 at row 1"):
            store.load(good.set_column(2, "year", pa.array([1, 2**63, 3], pa.uint64())))
        with pytest.raises(ValueError, match="duplicates must be"):
            store.load(good, duplicates="keep")
        assert store.load(good.slice(0, 0)) == len(store) == 0
        assert store.load(good) == len(store) == 3
    with pytest.raises(ValueError, match="to must be"):
        export_codes(path, "mysql", place[0])
    large = good.set_column(0, "id", pa.array([1, 2**63, 2], pa.uint64()))
    with pytest.raises(ValueError, match=r"2\*\*63 - 1"):
        export_codes(large, name, place[0], table=place[1] + "_large")


def test_a_lost_connection_leaves_nothing(path: Path, postgres_url: str) -> None:
    engine("pyarrow.parquet")
    with engine("psycopg").connect(postgres_url, autocommit=True) as observer:
        store = PostgresStore.open(postgres_url, About(33, id_type="string"), table="load_lost")

        def lose(step: Any) -> None:
            if step.done == 2 * BATCH:
                observer.execute("SELECT pg_terminate_backend(%s, 5000)", (store.connection.info.backend_pid,))

        with pytest.raises(ConnectionError, match=r"writing to table .load_lost. has ended, .* do the same again"):
            store.load(path, progress=lose)
        store.close()
        assert observer.execute("SELECT count(*) FROM load_lost").fetchone() == (0,)
    with PostgresStore.open(postgres_url, About(33), table="load_lost") as store:
        assert store.load(path) == N
        assert_whole(store, IDS["string"])
    with pytest.raises(ConnectionError, match="cannot connect to PostgreSQL"):
        export_codes(path, "postgres", "host=/nowhere", table="load_lost")
    for wrong in ("what is this secret", "postgresql://me:secret@[host/db"):
        with pytest.raises(ValueError, match="connection must be a URL such as") as raised:
            export_codes(path, "postgres", wrong, table="load_lost")
        assert "secret" not in str(raised.value)
    with pytest.raises(ValueError, match=r"connection must have client_encoding UTF8 .* got iso8859-1"):
        export_codes(path, "postgres", postgres_url + "&client_encoding=latin1", table="load_lost", fields=[])


def test_a_full_disk_of_the_server(path: Path, postgres_url: str) -> None:
    engine("pyarrow.parquet")
    with PostgresStore.open(postgres_url, About(33, id_type="string"), table="load_full") as store:
        run = store.connection.execute
        run(
            "CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
        )
        run("CREATE TRIGGER full_disk BEFORE INSERT ON load_full EXECUTE FUNCTION full_disk()")
        with pytest.raises(OSError, match="server's disk is full while table") as raised:
            store.load(path)
        assert raised.value.errno == errno.ENOSPC
        assert len(store) == 0
        run("DROP TRIGGER full_disk ON load_full")
        assert store.load(path) == N
        assert_whole(store, IDS["string"])


def test_a_full_disk_of_sqlite(path: Path, tmp_path: Path) -> None:
    engine("apsw", "sqlite_vec", "pyarrow.parquet")
    with SqliteVecStore.open(tmp_path / "a.db", About(33, id_type="string"), table="codes") as store:
        pages = int(store.connection.execute("PRAGMA page_count").get)
        for more in (5, 12):  # in the middle of the batches, and of the move
            store.connection.execute(f"PRAGMA max_page_count = {pages + more}")
            with pytest.raises(OSError, match=r"table .codes. .*disk (is|may be) full") as raised:
                store.load(path)
            assert raised.value.errno in (errno.ENOSPC, errno.EIO)  # sqlite-vec hides why it cannot write
            assert len(store) == 0
            with pytest.raises(OSError, match=r"disk (is|may be) full"):
                store.upsert(np.repeat(CODES, 9, axis=0), [str(number) for number in range(9 * N)])
        store.connection.execute("PRAGMA max_page_count = 100000")
        assert store.load(path) == N
        assert_whole(store, IDS["string"])


def test_a_table_of_the_user_s_own_is_loaded_in_place(path: Path, postgres_url: str) -> None:
    engine("pyarrow.parquet")
    with engine("psycopg").connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE load_own (id text PRIMARY KEY, title text NOT NULL, lang varchar(5))")
        connection.cursor().executemany("INSERT INTO load_own VALUES (%s, 'mine', 'xx')", [(i,) for i in IDS["string"]])
        settings: dict[str, Any] = {"add_column": True, "fields": ["lang"]}
        assert export_codes(path, "postgres", connection, table="load_own", **settings) == N
        found = connection.execute("SELECT count(code), count(DISTINCT title), count(lang) FROM load_own").fetchone()
        assert found == (N, 1, N - N // 3)
        connection.execute("DELETE FROM load_own WHERE id = %s", (IDS["string"][3],))
        with pytest.raises(ValueError, match=r"ids must be in table .*\"it's 3\\n\" is not \(1 such id"):
            export_codes(path, "postgres", connection, table="load_own", **settings)


KEEPS_OUT = {
    "insert": "BEFORE INSERT ON {} FOR EACH ROW WHEN (NEW.id = 'it''s 3\n')",
    "update": "BEFORE UPDATE ON {} FOR EACH ROW WHEN (NEW.id = 'it''s 3\n')",
}


@pytest.mark.parametrize("made_by", ["store", "user"])
@pytest.mark.parametrize("event", KEEPS_OUT)
def test_a_row_that_a_trigger_drops_is_named_and_nothing_is_left(
    event: str, made_by: str, path: Path, postgres_url: str
) -> None:
    engine("pyarrow.parquet")
    table = f"load_trigger_{event}_{made_by}"
    with engine("psycopg").connect(postgres_url, autocommit=True) as connection:
        run = connection.execute
        if made_by == "user":
            run(f"CREATE TABLE {table} (id text PRIMARY KEY, code bit(33))")
        store = PostgresStore.open(connection, About(33, id_type="string"), table=table)
        if event == "update":
            store.upsert(CODES & 128, IDS["string"])
        run("CREATE OR REPLACE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        run(f"CREATE TRIGGER keeps_out {KEEPS_OUT[event].format(table)} EXECUTE FUNCTION nothing()")
        before = store.count()
        for load in (lambda: store.load(path), lambda: store.upsert(CODES, IDS["string"])):
            with pytest.raises(ValueError, match=r"did not take the row of id \"it's 3\\n\" \(1 such row"):
                load()
        assert store.count() == before


def test_an_error_that_a_trigger_raises_is_a_value_error(path: Path, postgres_url: str) -> None:
    engine("pyarrow.parquet")
    with PostgresStore.open(postgres_url, About(33, id_type="string"), table="load_raises") as store:
        run = store.connection.execute
        run("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$not today$$; END'")
        run("CREATE TRIGGER refuses BEFORE INSERT ON load_raises FOR EACH ROW EXECUTE FUNCTION refuse()")
        for load in (lambda: store.load(path), lambda: store.upsert(CODES, IDS["string"])):
            with pytest.raises(ValueError, match='"load_raises" refuses the rows, and nothing is stored: not today'):
                load()
        assert len(store) == 0
