"""Tables and files that a store did not make are refused and stay as they were; so are names an engine would change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search.about import About
from hashlearn.search.stores import DuckDBStore, LanceStore, SqliteVecStore, Store, UsearchStore
from hashlearn.search.stores.base import Batch
from tests.search.codes import engine, random_codes

CODES = random_codes(5, 32)


@pytest.fixture
def apsw() -> Any:
    return engine("apsw", "sqlite_vec")


@pytest.mark.parametrize(
    "statements",
    [
        [
            "CREATE TABLE codes (id INTEGER PRIMARY KEY, code TEXT, price REAL)",
            "INSERT INTO codes VALUES (1, 'A', 9.5)",
        ],
        ["CREATE TABLE Codes (id INTEGER PRIMARY KEY, code BLOB)"],
        ["CREATE TABLE things (id, code)", "CREATE VIEW codes AS SELECT * FROM things"],
        ["CREATE TABLE things (id, code)", "CREATE INDEX codes ON things (id)"],
        ["CREATE VIRTUAL TABLE codes USING fts5(id, code)"],
        ["CREATE TABLE hashlearn_stores (shop TEXT)"],
    ],
)
def test_sqlite_refuses_what_is_not_its_own(tmp_path: Path, apsw: Any, statements: list[str]) -> None:
    path = tmp_path / "mine.db"
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"was not made by SqliteVecStore|of another kind"):
        SqliteVecStore.open(path, About(32), table="codes")
    assert path.read_bytes() == before


def test_sqlite_refuses_its_own_inner_tables_and_a_foreign_vec0(tmp_path: Path, apsw: Any) -> None:
    path = tmp_path / "mine.db"
    with SqliteVecStore.open(path, About(32), table="codes") as store:
        store.upsert(CODES, np.arange(5))
        store.connection.execute("CREATE VIRTUAL TABLE theirs USING vec0(id INTEGER PRIMARY KEY, code bit[32])")
    for name in ("codes_rowids", "CODES_chunks", "theirs"):
        with pytest.raises(ValueError, match="was not made by SqliteVecStore"):
            SqliteVecStore.open(path, About(32), table=name)
    for name in ("hashlearn_stores", "sqlite_codes", "SQLITE_MASTER"):
        with pytest.raises(ValueError, match="table must not be"):
            SqliteVecStore.open(path, About(32), table=name)
    with SqliteVecStore.open(path, About(32), table="codes") as store:
        assert len(store) == 5


def test_sqlite_names_are_one_whatever_their_case(tmp_path: Path, apsw: Any) -> None:
    path = tmp_path / "mine.db"
    with SqliteVecStore.open(path, About(32), table="Codes") as store:
        store.upsert(CODES, np.arange(5))
    with pytest.raises(ValueError, match="with codes of 32 bits and not n_bits=25"):
        SqliteVecStore.open(path, About(25), table="codes")
    with SqliteVecStore.open(path, About(32), table="cODES") as store:
        assert len(store) == 5
        store.connection.execute('DROP TABLE "Codes"')
    with SqliteVecStore.open(path, About(25), table="codes") as store:  # the table is gone, and so are its 32 bits
        assert len(store) == 0


@pytest.mark.parametrize("table", ["(id INTEGER PRIMARY KEY, diary TEXT)", "(id INTEGER PRIMARY KEY NOT NULL)"])
def test_sqlite_leaves_a_table_of_fields_that_the_user_made(tmp_path: Path, apsw: Any, table: str) -> None:
    path, fields = tmp_path / "mine.db", {"lang": str}
    with SqliteVecStore.open(path, About(32, fields=fields), table="codes") as store:
        store.upsert(CODES, range(5), {"lang": list("abcde")})
        run = store.connection.execute
        run("DROP TABLE codes_fields")
        run(f"CREATE TABLE codes_fields {table}")
        run("INSERT INTO codes_fields (id) VALUES (1)")
    with pytest.raises(ValueError, match='needs its table "codes_fields", which is missing or has other columns'):
        SqliteVecStore.open(path, About(32), table="codes")
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(engine("sqlite_vec").loadable_path())
    connection.execute("DROP TABLE codes")
    with pytest.raises(ValueError, match='table "codes_fields" is there already; fields need this name'):
        SqliteVecStore.open(path, About(32, fields=fields), table="codes")
    with SqliteVecStore.open(path, About(32), table="codes") as store:  # without fields it needs no such table
        assert len(store) == 0
    assert connection.execute("SELECT id FROM codes_fields").get == 1
    connection.close()


def test_sqlite_files_that_cannot_be_used_are_plain_errors(tmp_path: Path, apsw: Any) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes")
    with pytest.raises(ValueError, match='the file of table "codes" is no SQLite database'):
        SqliteVecStore.open(path, About(32), table="codes")
    assert path.read_text() == "my notes"
    with pytest.raises(OSError, match=r"its file .* cannot be opened"):
        SqliteVecStore.open(tmp_path / "nowhere" / "a.db", About(32), table="codes")
    path = tmp_path / "mine.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE codes_rowids (a TEXT)")
    connection.close()
    with pytest.raises(ValueError, match=r'"codes" cannot be made: .*"codes_rowids" already exists; choose another'):
        SqliteVecStore.open(path, About(32), table="codes")
    with SqliteVecStore.open(path, About(32), table="more") as store:
        store.connection.execute("PRAGMA query_only = 1")
        with pytest.raises(PermissionError, match='table "more" cannot be written'):
            store.upsert(CODES, range(5))


def test_a_wrong_model_makes_no_file(tmp_path: Path, apsw: Any) -> None:
    engine("usearch.index", "lancedb", "pyarrow", "duckdb")
    kinds: tuple[type[Store], ...] = (SqliteVecStore, LanceStore, DuckDBStore, UsearchStore)
    for kind in kinds:
        with pytest.raises(ValueError, match="model must be the digest of a hasher"):
            kind.open(tmp_path / "a", About(32, model="model.hashlearn"))
    assert list(tmp_path.iterdir()) == []


def test_usearch_refuses_what_is_not_its_own(tmp_path: Path) -> None:
    usearch = engine("usearch.index")
    path = tmp_path / "a.usearch"
    theirs = usearch.Index(ndim=32, metric=usearch.MetricKind.Hamming, dtype=usearch.ScalarKind.B1)
    theirs.add(np.arange(5, dtype=np.uint64), CODES)
    theirs.save(str(path))
    for content in (path.read_bytes(), b"", b"my notes"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="was not written by this version of UsearchStore"):
            UsearchStore.open(path, About(32))
        assert path.read_bytes() == content
    with pytest.raises(ValueError, match="not a regular file"):
        UsearchStore.open(tmp_path, About(32))


@pytest.mark.parametrize("extra", [[], ["price"]])
@pytest.mark.parametrize("metadata", [None, {"n_bits": "32"}])
def test_lancedb_refuses_what_is_not_its_own(tmp_path: Path, extra: list[str], metadata: Any) -> None:
    lancedb, pa = engine("lancedb"), engine("pyarrow")
    columns = [("id", pa.int64()), ("code", pa.list_(pa.uint8(), 4)), *((name, pa.float64()) for name in extra)]
    theirs = lancedb.connect(tmp_path).create_table("codes", schema=pa.schema(columns, metadata=metadata))
    with pytest.raises(ValueError, match=r"was not made by this version of LanceStore: .* id int64, code"):
        LanceStore.open(tmp_path, About(32), table="codes")
    assert theirs.list_versions()[-1]["version"] == 1


def test_lancedb_refuses_columns_that_it_could_not_filter_by(tmp_path: Path) -> None:
    engine("lancedb", "pyarrow")
    for name in ("a.b", "a`b"):
        with pytest.raises(ValueError, match="names without dots and backticks in LanceDB"):
            LanceStore.open(tmp_path / "lance", About(32, fields={name: str}), table="codes")
    for name in ("_distance", "ID"):
        with pytest.raises(ValueError, match=f"'{name}' is taken"):
            LanceStore.open(tmp_path / "lance", About(32, fields={name: str}), table="codes")
    assert not (tmp_path / "lance").exists()


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", 5, None])
def test_names_that_are_none_are_refused(tmp_path: Path, apsw: Any, name: Any) -> None:
    engine("lancedb", "pyarrow", "duckdb")
    for opener in (SqliteVecStore.open, LanceStore.open, DuckDBStore.open):
        with pytest.raises(ValueError, match="table must be a name"):
            opener(tmp_path / "a", About(32), table=name)


def test_ids_that_others_have_written_do_not_read_as_nothing_found(tmp_path: Path, apsw: Any) -> None:
    engine("lancedb", "pyarrow")
    with SqliteVecStore.open(tmp_path / "a.db", About(32), table="codes") as store:
        store.connection.execute("INSERT INTO codes (id, code) VALUES (-1, vec_bit(?))", (CODES[0].tobytes(),))
        with pytest.raises(ValueError, match='table "codes" has a row with id -1'):
            store.search(CODES, 1)
    engine("duckdb", "pyarrow")
    with DuckDBStore.open(":memory:", About(32), table="codes") as store:
        store.connection.execute("INSERT INTO codes VALUES (-1, CAST(? AS BLOB)::BIT)", [CODES[0].tobytes()])
        with pytest.raises(ValueError, match='table "codes" has a row with id -1'):
            store.search(CODES, 1)
    with LanceStore.open(tmp_path / "lance", About(32), table="codes") as store:
        store._put([Batch(CODES[:1], np.array([-1]), {})], True)
        with pytest.raises(ValueError, match="table 'codes' has a row with id -1"):
            store.search(CODES, 1)
