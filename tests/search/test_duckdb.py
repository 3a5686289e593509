"""DuckDB: SQL that needs no hashlearn, tables of others, one process at a time, rows that are visible together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.bits import hamming_distances
from hashlearn.search.about import About
from hashlearn.search.stores import DuckDBStore, column
from tests.search.codes import engine, nearest, random_codes

CODES = random_codes(200, 33)
HOLDER = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.readline()"


@pytest.fixture
def duckdb() -> Any:
    return engine("duckdb", "pyarrow")


def rows_of(duckdb: Any, path: Path, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """What DuckDB alone answers."""
    with duckdb.connect(str(path)) as connection:
        return connection.execute(statement, list(parameters)).fetchall()


def test_the_macro_answers_in_plain_sql(tmp_path: Path, duckdb: Any) -> None:
    path = tmp_path / "a.duckdb"
    with DuckDBStore.open(path, About(33, fields={"year": int}), table="codes") as store:
        store.upsert(CODES, np.arange(200), {"year": np.arange(200) % 3})
    query = CODES[7]
    distances = hamming_distances(query[None], CODES)[0]
    found = rows_of(duckdb, path, "SELECT hamming_bits(code, ?::BLOB) FROM codes ORDER BY id", query.tobytes())
    assert [row[0] for row in found] == distances.tolist()
    statement = "SELECT id FROM codes WHERE year = 1 ORDER BY hamming_bits(code, from_hex(?)), id LIMIT 5"
    found = rows_of(duckdb, path, statement, query.tobytes().hex())
    some = np.arange(200) % 3 == 1
    assert [row[0] for row in found] == nearest(query[None], CODES[some], np.arange(200)[some], 5)[0][0].tolist()
    # Between two codes of a table, and text of bits.
    pairs = "SELECT hamming_bits(a.code, b.code) FROM codes a, codes b WHERE a.id = 3 AND b.id = 7"
    assert rows_of(duckdb, path, pairs) == [(distances[3],)]
    assert rows_of(duckdb, path, "SELECT hamming_bits('0110'::BIT, '0011'::BIT)") == [(2,)]
    # DuckDB's own function of that name stays what it was.
    assert rows_of(duckdb, path, "SELECT hamming('duck', 'dock')") == [(1,)]


def test_a_macro_of_that_name_is_left_alone(tmp_path: Path, duckdb: Any) -> None:
    path = tmp_path / "a.duckdb"
    rows_of(duckdb, path, "CREATE MACRO hamming_bits(a, b) AS 5")
    with DuckDBStore.open(path, About(33), table="codes") as store:
        store.upsert(CODES, np.arange(200))
        np.testing.assert_array_equal(store.search(CODES[:2], 1).distances, 0)
    assert rows_of(duckdb, path, "SELECT hamming_bits(1, 2)") == [(5,)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE Codes (id BIGINT PRIMARY KEY, code BIT)",
        "CREATE TABLE codes (id BIGINT, code BIT); COMMENT ON TABLE codes IS 'my notes'",
        "CREATE TABLE codes (id BIGINT, code BIT); COMMENT ON TABLE codes IS '[1]'",
        f"CREATE TABLE codes (id BIGINT); COMMENT ON TABLE codes IS '{About(33, 'int64', fields={}).to_json()}'",
        f"CREATE TABLE codes (id BIGINT, code BIT); COMMENT ON TABLE codes IS '{About(33, 'string').to_json()}'",
        "CREATE VIEW codes AS SELECT 1 AS id",
    ],
)
def test_what_is_not_its_own_is_refused(tmp_path: Path, duckdb: Any, statement: str) -> None:
    path = tmp_path / "mine.duckdb"
    rows_of(duckdb, path, statement)
    with pytest.raises(ValueError, match='table "codes" is there already and was not made by DuckDBStore'):
        DuckDBStore.open(path, About(33), table="codes")
    assert rows_of(duckdb, path, "SELECT count(*) FROM duckdb_functions() WHERE function_name = 'hamming_bits'") == [
        (0,)
    ]


def test_columns_that_others_added_stay(tmp_path: Path, duckdb: Any) -> None:
    path = tmp_path / "a.duckdb"
    with DuckDBStore.open(path, About(33, id_type="string", fields={"lang": str}), table="codes") as store:
        store.upsert(CODES[:2], ["a", "b"], {"lang": ["en", None]})
    rows_of(duckdb, path, "ALTER TABLE codes ADD COLUMN seen TIMESTAMP DEFAULT TIMESTAMP '2026-01-01'")
    with DuckDBStore.open(path, About(33), table="CODES") as store:  # DuckDB ignores the case of names
        assert (store.fields, store.id_type) == ({"lang": "text"}, "string")
        store.upsert(CODES[2:4], ["b", "c"], {"lang": ["de", "fr"]})
        assert store.count(column("lang") == "de") == 1
    assert [row[0] is not None for row in rows_of(duckdb, path, "SELECT seen FROM codes ORDER BY id")] == [True] * 3


def test_a_file_that_another_process_has_open_is_refused_by_name(tmp_path: Path, duckdb: Any) -> None:
    path = tmp_path / "a.duckdb"
    with DuckDBStore.open(path, About(33), table="codes") as store:
        store.upsert(CODES, np.arange(200))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(
            OSError, match=r"a\.duckdb' is open in another process, and DuckDB lets one at a time; close"
        ):
            DuckDBStore.open(path, About(33), table="codes")
        holder.communicate("\n", timeout=60)
    assert len(DuckDBStore.open(path, About(33), table="codes")) == 200


@pytest.mark.parametrize("place", ["junk", "none/a.duckdb", "."])
def test_what_is_no_database_is_refused_by_name(tmp_path: Path, duckdb: Any, place: str) -> None:
    (tmp_path / "junk").write_bytes(b"my notes" * 1000)
    with pytest.raises(OSError, match=r"database '.*' cannot be opened: "):
        DuckDBStore.open(tmp_path / place, About(33), table="codes")
    assert (tmp_path / "junk").read_bytes() == b"my notes" * 1000
