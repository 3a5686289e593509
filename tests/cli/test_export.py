"""``hashlearn export --to`` a store: every row is there once, whatever was there before, and no password is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import load
from hashlearn.hashers import LSH
from hashlearn.search.about import About
from hashlearn.search.stores import STORES, PostgresStore
from hashlearn.search.stores.postgres.connection import shown_address
from tests.cli.files import N, X, answer, invoke, refused
from tests.search import server
from tests.search.codes import engine

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

IDS = [f"doc '{i:03}'" for i in range(N)]
FILES = {name: f"codes.{name}" for name in ("sqlite_vec", "duckdb", "usearch", "faiss", "lancedb")}


@pytest.fixture
def codes(folder: Path) -> Path:
    """codes.parquet with text ids and a column lang; half.parquet has the second half, coded otherwise."""
    vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X[:N].ravel()), 64)
    table = pyarrow.table({"id": IDS, "vector": vectors, "lang": ["en", "de"] * (N // 2)})
    parquet.write_table(table, "docs.parquet")
    parquet.write_table(table.slice(N // 2).set_column(1, "vector", vectors.slice(0, N // 2)), "half-docs.parquet")
    for name in ("", "half-"):
        answer("encode", "model", f"{name}docs.parquet", "-o", f"{name}codes.parquet", "--keep", "lang")
    return folder


def place_of(name: str, folder: Path) -> tuple[list[str], list[Any]]:
    """The options that name a store, and what opens it from Python."""
    engine(*STORES[name].packages)
    if name == "postgres":
        table = f"t_{abs(hash(str(folder)))}"
        return ["--url", server.start(), "--table", table], [server.start(), {"table": table}]
    return ["--path", FILES[name]], [FILES[name], {}]


@pytest.mark.parametrize("name", [*FILES, "postgres"])
def test_a_store_is_filled_in_one_command(codes: Path, name: str) -> None:
    options, place = place_of(name, codes)
    hasher = load("model")
    has_fields = STORES[name].has_fields
    for _ in range(2):  # the second time every row is replaced by itself
        said = invoke("export", "codes.parquet", "--to", name, *options)
        assert said.exit_code == 0, said.output
        assert ("left out: lang" in said.stderr) is not has_fields
    with STORES[name].open(place[0], About(12), **place[1]) as store:
        assert (store.count(), store.id_type) == (N, "string")
        assert store.search(hasher.encode(X[:N]), 1).distances.max() == 0
        if has_fields:
            assert store.count({"lang": "en"}) == N // 2
    report = answer("export", "half-codes.parquet", "--to", name, *options, "--quiet") if has_fields else None
    assert report is None or (report["rows"], report["n_bits"], report["id_type"]) == (N // 2, 12, "string")
    refused(
        "export", "half-codes.parquet", "--to", name, *options, "--duplicates", "refuse", words="ids must be new, but"
    )
    LSH(n_bits=12, random_state=1).fit(X[:N]).save("other")
    answer("encode", "other", "docs.parquet", "-o", "other.parquet", "--keep", "lang")
    refused("export", "other.parquet", "--to", name, *options, words="has codes of model")
    with STORES[name].open(place[0], About(12), **place[1]) as store:
        assert store.count() == N
        if has_fields:  # the second half has the codes of the first
            found = store.search(hasher.encode(X[: N // 2]), N, where=IDS[N // 2 :])
            assert (found.distances[:, 0] == 0).all()


@pytest.mark.parametrize("name", [*FILES, "postgres"])
def test_describe_and_search_read_what_export_wrote(codes: Path, name: str) -> None:
    options, (place, settings) = place_of(name, codes)
    assert invoke("export", "half-codes.parquet", "--to", name, *options).exit_code == 0
    table = ["--table", settings["table"]] if settings else []
    report, from_file = answer("describe", place, *table), answer("describe", "half-codes.parquet")
    assert (report["kind"], report["store"], report["fields"]) == ("store", name, ["lang"] * STORES[name].has_fields)
    assert all(report[part] == from_file[part] for part in ("rows", "n_bits", "id_type", "model"))
    assert report["model"] in invoke("describe", place, *table).stdout
    search = ["search", "model", "--queries", "Q.npy", "-k", 7]
    near = answer(*search, "--database-codes", "half-codes.parquet")["neighbors"]
    from_store = [*search, "--database-codes", place, *table]
    assert answer(*from_store)["neighbors"] == near
    rescoring = ["--rescore", "half-docs.parquet", "--metric", "l2"]
    rescored = answer(*search, "--database-codes", "half-codes.parquet", *rescoring)["neighbors"]
    assert answer(*from_store, *rescoring)["neighbors"] == rescored
    if STORES[name].has_fields:
        found = answer(*from_store, "--where", "lang=en", "--where", "lang!=fr")["neighbors"]
        assert all(int(item.removeprefix("doc '")[:3]) % 2 == 0 for row in found for item in row["ids"])
        for more in ([], rescoring):
            assert [row["ids"] for row in answer(*from_store, *more, "--where", "lang=fr")["neighbors"]] == [[]] * 40
        refused(*from_store, "--where", "lang", words="--where: must be NAME=VALUE")
        refused(*from_store, "--where", "land=en", words="has no column 'land'; its columns are 'lang'")
    else:
        refused(*from_store, "--where", "lang=en", words="keeps ids and codes only")
        refused(*from_store, "--table", "a", words=f"--table: is not for {name}; leave it out")
    LSH(n_bits=12, random_state=1).fit(X[:N]).save("other")
    refused("search", "other", *from_store[2:], words="has codes of model")
    LSH(n_bits=8, random_state=1).fit(X[:N]).save("other")
    refused("search", "other", *from_store[2:], words="codes of 12 bits and not n_bits=8")
    refused(*from_store, "--radius", 2, words="--radius: needs the codes in memory")
    refused(*from_store, "--asymmetric", words="--asymmetric: needs the codes in memory")
    refused(*from_store, "--database", "X.npy", words="give either --database or --database-codes")


def test_where_there_is_no_store(codes: Path) -> None:
    engine("apsw", "sqlite_vec")
    search = ["search", "model", "--queries", "Q.npy", "--database-codes"]
    refused(*search, "codes.parquet", "--where", "lang=en", words="--where: is for stores; hashlearn export makes one")
    refused(*search, "codes.parquet", "--table", "codes", words="--table: is for stores")
    refused("describe", "codes.parquet", "--table", "codes", words="--table: codes.parquet is no store; leave it out")
    answer("export", "codes.parquet", "--to", "sqlite_vec", "--path", "codes.db")
    refused("describe", "codes.db", "--table", "other", words="nothing is stored at table")
    refused(*search, "codes.db", "--table", "other", words="nothing is stored at table")
    Path("codes.db").write_bytes(b"SQLite format 3\0" + bytes(1000))
    for command in (["describe", "codes.db"], [*search, "codes.db"]):
        said = invoke(*command)
        assert (said.exit_code in (1, 2), said.stdout, len(said.stderr.splitlines())) == (True, "", 1), said.output


def test_a_table_of_the_user(codes: Path) -> None:
    psycopg = engine("psycopg")
    url, table = server.start(), f"t_{abs(hash(str(codes)))}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} (name text PRIMARY KEY, title text NOT NULL)")
        rows = [(item, f"title of {item}") for item in IDS]
        connection.cursor().executemany(f"INSERT INTO {table} VALUES (%s, %s)", rows)
        options = ["--to", "postgres", "--url", url, "--table", f"public.{table}", "--columns", "name,bits"]
        refused("export", "codes.parquet", *options, words="add_column")
        answer("encode", "model", "docs.parquet", "-o", "alone.parquet")
        refused("export", "codes.parquet", *options, "--add-column", words="has no column 'lang'")
        answer("export", "alone.parquet", *options, "--add-column")
        search = ["search", "model", "--queries", "Q.npy", "-k", 3, "--database-codes"]
        found = answer(*search, url, *options[4:], "--where", "title!=nothing")["neighbors"]
        assert found == answer(*search, "alone.parquet")["neighbors"]
        assert answer("describe", url, *options[4:])["rows"] == N
        found = connection.execute(f"SELECT count(*), count(bits), min(title) FROM {table}").fetchone()
    assert found == (N, N, f"title of {IDS[0]}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["codes.parquet"], "--to must be one of 'postgres', 'sqlite_vec'"),
        (["model", "--to", "duckdb", "--path", "a"], "model: must be a Parquet file of codes; hashlearn encode makes"),
        (["docs.parquet", "--to", "duckdb", "--path", "a"], "docs.parquet: is not a file of codes"),
        (["codes.parquet", "--to", "duckdb"], "--path: is missing; name the file or folder of the duckdb store"),
        (["codes.parquet", "--to", "usearch", "--path", "a", "--table", "b"], "--table: is not for --to usearch"),
        (["codes.parquet", "--to", "sqlite_vec", "--url", "a"], "--url: is not for --to sqlite_vec; leave it out"),
        (["codes.parquet", "--to", "postgres", "--path", "a"], "--path: is not for --to postgres; leave it out"),
        (["codes.parquet", "--to", "duckdb", "--path", "a", "--kind", "hnsw"], "--kind: is not for --to duckdb"),
        (["codes.parquet", "--to", "duckdb", "--path", "a", "--add-column"], "--add-column: is not for --to duckdb"),
        (["codes.parquet", "--to", "postgres", "--columns", "id"], "--columns: must be two names, as id,code"),
        (["model", "--to", "onnx"], "--to must be one of 'postgres', 'sqlite_vec'"),
        (["codes.parquet", "--to", "mysql"], "--to must be one of 'postgres', 'sqlite_vec'"),
    ],
)
def test_options_that_do_not_fit(codes: Path, arguments: list[str], words: str) -> None:
    before = sorted(path.name for path in codes.iterdir())
    refused("export", *arguments, words=words)
    assert sorted(path.name for path in codes.iterdir()) == before


SECRET = "hunter2"
# What libpq takes as a password, or as something else if a letter is not encoded. {} is the secret.
SPELLINGS = [
    "postgresql://me:{}@127.0.0.1:1/db",
    "postgresql://me:{}@a@127.0.0.1:1/db",
    "postgresql://me:a/{}@127.0.0.1:1/db",
    "postgresql://me:{}?a@127.0.0.1:1/db",
    "postgresql://me:100%{}@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?p%61ssword={}",
    "postgresql://127.0.0.1:1/db?connect_timeout={}",
    "jdbc:postgresql://127.0.0.1:1/db?user=me&password={}",
    "me:{}@127.0.0.1:1/db",
    "host=127.0.0.1 port=1 password = {}",
    "host=127.0.0.1 port=1 password=a\\ {}",
    "host=127.0.0.1 port=1 passwd={}",
    "host=127.0.0.1 port={}",
    "dbname=postgresql://me:{}@127.0.0.1:1/x host=127.0.0.1 port=1",
]


@pytest.mark.parametrize("url", SPELLINGS)
def test_no_error_shows_a_password(codes: Path, url: str) -> None:
    engine("psycopg")
    for options in ([], ["--json"]):
        url = url.replace("{}", SECRET)
        said = invoke("export", "codes.parquet", "--to", "postgres", "--url", url, *options)
        assert (said.exit_code in (1, 2), said.stdout) == (True, ""), said.output
        assert said.stderr.startswith("Error: ")
        assert len(said.stderr.splitlines()) == 1
        assert SECRET not in said.stderr
    with pytest.raises((ConnectionError, ValueError)) as refused_by_store:
        PostgresStore.open(url, About(12), table="codes")
    assert SECRET not in str(refused_by_store.value)


def test_no_success_shows_a_password(codes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, table = server.start(), f"t_{abs(hash(str(codes)))}"
    psycopg = engine("psycopg")
    parts = {**psycopg.conninfo.conninfo_to_dict(url), "password": None}
    parts = psycopg.conninfo.make_conninfo(**parts)
    (codes / "services").write_text(f"[mine]\npassword={SECRET}\n" + parts.replace(" ", "\n").replace("'", ""))
    monkeypatch.setenv("PGSERVICEFILE", str(codes / "services"))
    more = "&" if "?" in url else "?"
    spellings = [f"{url}{more}password={{}}", f"{url}{more}p%61ssword={{}}", "service=mine", "service=mine password={}"]
    spellings += [parts + text for text in (" password={}", "\npassword\t=\n{}")]
    for spelling in spellings:
        options = ["--to", "postgres", "--url", spelling.replace("{}", SECRET), "--table", table]
        report = answer("export", "codes.parquet", *options)
        said = invoke("export", "codes.parquet", *options)
        assert said.exit_code == 0, said.output
        assert SECRET not in said.output + said.stderr + str(report)
        assert report["place"] == ("service=mine" if "service" in spelling else shown_address(url))
    monkeypatch.setenv("PGSERVICE", "mine")
    report = answer("export", "codes.parquet", "--to", "postgres", "--table", table)
    assert report["place"] == "the server of the environment"


def test_an_error_of_a_package_is_one_line(codes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each package's own exceptions, also if the store imports a module inside the package."""
    for name, kind in STORES.items():
        module = kind.packages[0].partition(".")[0]
        error = type("EngineError", (Exception,), {"__module__": f"{module}.inner"})("the engine says no")

        def fails(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        monkeypatch.setattr("hashlearn.search.stores.export_codes", fails)
        path = [] if name == "postgres" else ["--path", "a"]
        said = invoke("export", "codes.parquet", "--to", name, *path)
        assert (said.exit_code, said.stderr) == (1, "Error: the engine says no\n")


def test_ctrl_c_says_what_is_there(codes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hashlearn.search.stores.export_codes", interrupted)
    said = invoke("export", "codes.parquet", "--to", "duckdb", "--path", "a")
    assert (said.exit_code, said.stdout) == (130, "")
    assert said.stderr == "Interrupted. The store is as it was before.\n"
    assert np.load("X.npy").shape == (N, 64)
