"""Tables of the user's own in PostgreSQL: their ids, columns and rules; two-stage search in one statement."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.search.about import About
from hashlearn.search.stores import PostgresStore, column
from tests.search.codes import engine, random_codes

CODES = random_codes(40, 33)
TEXTS = ["b", "B", "a", "Z", "é", "e", "10", "9", "it's", "new\nline", '"q"', "%s {}", "ä", "A", " x"]


@pytest.fixture
def database(postgres_url: str) -> Iterator[Any]:
    """A connection in autocommit mode."""
    with engine("psycopg").connect(postgres_url, autocommit=True) as connection:
        yield connection


def rows(database: Any, text: str) -> list[tuple[Any, ...]]:
    return list(database.execute(text).fetchall())


def sorted_by_distance(query: np.ndarray, codes: np.ndarray, ids: list[Any]) -> list[Any]:
    distances = np.bitwise_count(codes ^ query).sum(axis=1).tolist()
    return [item for _, item in sorted(zip(distances, ids, strict=True))]


@pytest.mark.parametrize(
    ("kind", "ids", "id_type"),
    [
        ("integer", [7, 3, 2**31 - 1], "int64"),
        ("text", TEXTS, "string"),
        ('text COLLATE "POSIX"', TEXTS, "string"),
        ("varchar(20)", TEXTS, "string"),
        ("uuid", [str(uuid.UUID(int=number)) for number in (2**127 + 5, 3, 4)], "string"),
    ],
)
def test_ids_of_a_table_that_is_there(
    postgres_url: str, database: Any, kind: str, ids: list[Any], id_type: str
) -> None:
    name = f"own_{abs(hash(kind))}"
    database.execute(f"CREATE TABLE {name} (id {kind} PRIMARY KEY, title text DEFAULT 'none', code bit(33))")
    codes = np.repeat(CODES[:1], len(ids), axis=0)  # all distances are equal, so ids alone decide
    with PostgresStore.open(postgres_url, About(33), table=name) as store:
        assert (store.id_type, store.fields) == (id_type, {})
        store.upsert(codes, ids)
        assert store.search(CODES[:1], len(ids)).indices[0].tolist() == sorted(ids)
        assert store.search(CODES[:1], 2, where=ids[:2]).indices[0].tolist() == sorted(ids[:2])
        with pytest.raises(ValueError, match="ids must be new"):
            store.add(codes[:1], ids[:1])
        assert store.remove(ids[1:]) == len(ids) - 1
    assert rows(database, f"SELECT id::text, title FROM {name}") == [(str(ids[0]), "none")]
    with pytest.raises(ValueError, match="is there already, with ids that are"):
        PostgresStore.open(postgres_url, About(33, id_type="string" if id_type != "string" else "int64"), table=name)


def test_text_that_is_no_uuid_and_two_spellings_of_one_are_refused(postgres_url: str, database: Any) -> None:
    database.execute("CREATE TABLE own_uuids (id uuid PRIMARY KEY, code bit(33))")
    item = str(uuid.UUID(int=2**127 + 0xABC))
    with PostgresStore.open(postgres_url, About(33), table="own_uuids") as store:
        for ids in (["page"], [item, item.upper()]):
            with pytest.raises(ValueError, match=r"own_uuids.* refuses the rows, and nothing is stored"):
                store.upsert(CODES[: len(ids)], ids)
        with pytest.raises(ValueError, match="where does not fit the columns"):
            store.count(where=["page"])
        store.upsert(CODES[:1], [uuid.UUID(item)])
        assert store.search(CODES[:1], 1, where=[item.upper()]).indices.tolist() == [[item]]
        assert len(store) == 1


def test_the_code_column_is_added_on_request(postgres_url: str, database: Any) -> None:
    database.execute("CREATE TABLE without_code (id bigint PRIMARY KEY, title text NOT NULL)")
    database.execute("INSERT INTO without_code SELECT n, 'title ' || n FROM generate_series(0, 9) AS n")
    with pytest.raises(ValueError, match=r"its column 'code' has type none: add_column=True adds it as bit\(33\)"):
        PostgresStore.open(postgres_url, About(33), table="without_code")
    with PostgresStore.open(postgres_url, About(33, model="a" * 64), table="without_code", add_column=True) as store:
        assert len(store) == 0
        store.add(CODES[:5], range(5))  # the rows are there, without codes
        assert len(store) == 5
        with pytest.raises(ValueError, match=r"ids must be new, but 4 is .* \(1 such id"):
            store.add(CODES[:2], [4, 5])
    with PostgresStore.open(postgres_url, About(33), table="without_code") as store:
        assert (len(store), store.model) == (5, "a" * 64)
    assert rows(database, "SELECT id, title FROM without_code ORDER BY id")[9] == (9, "title 9")


def test_rows_that_need_more_than_a_code_are_only_updated(postgres_url: str, database: Any) -> None:
    database.execute("CREATE TABLE strict (id text PRIMARY KEY, title text NOT NULL, code bit(33))")
    database.execute("INSERT INTO strict VALUES ('a', 'first'), ('b', 'second')")
    with PostgresStore.open(postgres_url, About(33), table="strict") as store:
        store.upsert(CODES[:2], ["b", "a"])
        with pytest.raises(ValueError, match=r"ids must be in table \"strict\" already.*'c' is not \(2 such id"):
            store.upsert(CODES[2:5], ["a", "d", "c"])
        assert store.search(CODES[:2], 1).indices.ravel().tolist() == ["b", "a"]  # nothing has changed
        store.upsert(CODES[5:6], ["a"])
        assert store.search(CODES[5:6], 1).indices.tolist() == [["a"]]
    assert rows(database, "SELECT id, title FROM strict ORDER BY id") == [("a", "first"), ("b", "second")]


def test_new_rows_that_would_be_empty_are_refused_with_the_statement_that_makes_them(
    postgres_url: str, database: Any
) -> None:
    database.execute('CREATE TABLE docs (id text PRIMARY KEY, lang text, "a % b" text, seen boolean DEFAULT false)')
    database.execute("INSERT INTO docs VALUES ('a', 'en', 'first')")
    with PostgresStore.open(postgres_url, About(33), table="docs", add_column=True) as store:
        store.upsert(CODES[:1], ["a"])
        said = r"ids must be in table \"docs\" already, .* no values in 'lang', 'a % b'; 'b' is not \(2 such id\(s\)\)"
        with pytest.raises(ValueError, match=said) as refused:
            store.upsert(CODES[:3], ["a", "b", "c"])
        statement = str(refused.value).partition("Insert these rows first: ")[2]
        for item in ("b", "c"):
            database.execute(statement, (item, "de", "more"))
        store.upsert(CODES[:3], ["a", "b", "c"])
        with pytest.raises(ValueError, match="'d' is not"):
            store.add(CODES[3:4], ["d"])
        assert len(store) == 3
    assert rows(database, "SELECT count(*) FROM docs") == [(3,)]


def test_ids_that_postgresql_makes_are_refused_with_the_statement_that_makes_them(
    postgres_url: str, database: Any
) -> None:
    database.execute("CREATE TABLE numbered (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, code bit(33))")
    with PostgresStore.open(postgres_url, About(33), table="numbered") as store:
        with pytest.raises(ValueError, match="because PostgreSQL makes its ids; 1 is not") as refused:
            store.upsert(CODES[:1], [1])
        database.execute(str(refused.value).partition("Insert these rows first: ")[2])
        store.upsert(CODES[:1], [1])
        assert len(store) == 1


def test_rules_of_the_table_are_one_clear_error(postgres_url: str, database: Any) -> None:
    database.execute("CREATE TABLE rules (id varchar(3) PRIMARY KEY CHECK (id <> 'no'), code bit(33))")
    database.execute("CREATE TABLE small (id smallint PRIMARY KEY, code bit(33))")
    with PostgresStore.open(postgres_url, About(33), table="rules") as store:
        for ids, message in ((["yes", "no"], "check constraint"), (["yes", "long"], "too long")):
            with pytest.raises(
                ValueError, match=rf"table .rules. refuses the rows, and nothing is stored: .*{message}"
            ):
                store.upsert(CODES[:2], ids)
        assert len(store) == 0
    with (
        PostgresStore.open(postgres_url, About(33), table="small") as store,
        pytest.raises(ValueError, match="out of range"),
    ):
        store.upsert(CODES[:1], [2**40])


@pytest.fixture
def articles(database: Any) -> Any:
    """A table with columns of several types."""
    database.execute("DROP TABLE IF EXISTS articles; DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('sad', 'ok')")
    database.execute(
        "CREATE TABLE articles (id bigint PRIMARY KEY, day date, price numeric(8, 2), open boolean, mood mood, "
        '"odd ""% name" varchar(9), code bit(33))'
    )
    for row in range(40):
        values = (row, f"2024-01-{row % 28 + 1:02}", row / 4, row % 2 == 0, ("sad", "ok", None)[row % 3], f"{row % 5}")
        database.execute("INSERT INTO articles VALUES (%s, %s, %s, %s, %s, %s)", values)
    return database


def test_every_column_of_the_user_s_can_be_in_where(postgres_url: str, articles: Any) -> None:
    with PostgresStore.open(postgres_url, About(33), table="articles") as store:
        store.upsert(CODES, range(40))
        cases = [
            (column("day") >= "2024-01-20", lambda row: row % 28 + 1 >= 20),
            (column("price") < 2.5, lambda row: row / 4 < 2.5),
            ({"open": True, "mood": ["sad", "ok"]}, lambda row: row % 2 == 0 and row % 3 < 2),
            (column("mood").is_missing() | (column('odd "% name') == "3"), lambda row: row % 3 == 2 or row % 5 == 3),
        ]
        for where, keep in cases:
            expected = [row for row in range(40) if keep(row)]
            assert store.count(where) == len(expected)
            ranked = sorted_by_distance(CODES[3], CODES[expected], expected)
            for exact in (True, False):  # without an index, both are scans
                found = store.search(CODES[3:4], 5, where=where, exact=exact)
                assert found.indices[0].tolist() == ranked[:5]
        for where in ({"day": "soon"}, {"open": "perhaps"}, {"price": True}, column("mood") == "angry"):
            with pytest.raises(ValueError, match='where does not fit the columns of table "articles"'):
                store.search(CODES[:1], 1, where=where)
        with pytest.raises(ValueError, match=r"has no column 'town'; its columns are 'day', 'price'"):
            store.count({"town": "x"})
        assert store.remove(where=column("day") < "2024-01-03") == 4
        assert len(store) == 36


def test_fields_are_columns_of_the_user_s(postgres_url: str, articles: Any) -> None:
    with PostgresStore.open(postgres_url, About(33, fields={"price": float, "open": bool}), table="articles") as store:
        values = {"price": [9.25, None, 3], "open": [None, True, False]}
        with pytest.raises(ValueError, match=r"no values in 'day', 'mood', .*; 50 is not"):
            store.upsert(CODES[:3], [1, 2, 50], values)
        store.upsert(CODES[:3], [1, 2, 30], values)
        assert store.count(column("price") > 9) == 1
    found = rows(articles, "SELECT id, price::float, open, day::text FROM articles WHERE code IS NOT NULL ORDER BY id")
    assert found == [(1, 9.25, None, "2024-01-02"), (2, None, True, "2024-01-03"), (30, 3.0, False, "2024-01-03")]
    with pytest.raises(ValueError, match=r"column 'day' has type date, and fields says text"):
        PostgresStore.open(postgres_url, About(33, fields={"day": str}), table="articles")
    with pytest.raises(ValueError, match=r"has no column 'town' for fields; its other columns are 'day'"):
        PostgresStore.open(postgres_url, About(33, fields={"town": str}), table="articles")


VECTORS = np.random.default_rng(0).standard_normal((41, 8)).astype(np.float32)
VECTORS[40] = 0


@pytest.fixture
def documents(postgres_url: str, database: Any) -> Iterator[PostgresStore]:
    """Documents with text ids and vectors; one has none, one has zeros."""
    database.execute("DROP TABLE IF EXISTS docs")
    PostgresStore.open(postgres_url, About(33), table="warm").close()  # makes the extension
    database.execute("CREATE TABLE docs (id text PRIMARY KEY, lang text, embedding vector(8), half halfvec(8))")
    for row, vector in enumerate(VECTORS):
        text = "[" + ",".join(map(str, vector.tolist())) + "]"
        database.execute("INSERT INTO docs VALUES (%s, %s, %s, %s)", (f"d{row}", "en" if row % 2 else "de", text, text))
    database.execute("INSERT INTO docs VALUES ('none', 'en')")
    with PostgresStore.open(postgres_url, About(33), table="docs", add_column=True) as store:
        store.upsert(np.concatenate([CODES, CODES[:2]]), [*(f"d{row}" for row in range(41)), "none"])
        yield store


def best(query: int, candidates: list[int], metric: str, k: int) -> list[tuple[str, float]]:
    """The full answer in float64."""
    vectors, wanted = VECTORS[candidates].astype(float), VECTORS[query].astype(float) + 0.01
    scores = {
        "dot": vectors @ wanted,
        "l2": -np.linalg.norm(vectors - wanted, axis=1),
        "cosine": vectors @ wanted / np.linalg.norm(wanted) / np.maximum(np.linalg.norm(vectors, axis=1), 1e-30),
    }[metric]
    found = sorted(zip(-scores, [f"d{row}" for row in candidates], strict=True))
    return [(name, -score) for score, name in found[:k]]


@pytest.mark.parametrize("metric", ["cosine", "l2", "dot"])
def test_two_stages_are_a_full_sort_of_the_candidates(documents: PostgresStore, metric: str) -> None:
    queries = VECTORS[:4] + np.float32(0.01)
    codes = np.concatenate([CODES, CODES[:1]])
    for where, languages in ((None, ("en", "de")), ({"lang": "en"}, ("en",))):
        found = documents.search_rescored(CODES[:4], queries, 5, depth=12, metric=metric, where=where)
        for query in range(4):
            seen = [row for row in range(41) if ("en" if row % 2 else "de") in languages]
            distances = np.bitwise_count(codes[seen] ^ CODES[query]).sum(axis=1).tolist()
            names = [f"d{row}" for row in seen]
            ranked = [row for _, _, row in sorted(zip(distances, names, seen, strict=True))][:12]
            expected = best(query, ranked, metric, 5)
            assert found.indices[query].tolist() == [name for name, _ in expected]
            np.testing.assert_allclose(found.scores[query], [score for _, score in expected], rtol=1e-4, atol=1e-5)


def test_two_stages_with_half_precision_and_an_index(documents: PostgresStore) -> None:
    exact = documents.search_rescored(CODES[:3], VECTORS[:3], 3, depth=41)
    assert exact.indices[:, 0].tolist() == ["d0", "d1", "d2"]
    half = documents.search_rescored(CODES[:3], VECTORS[:3], 3, depth=41, vector_column="half")
    assert half.indices.tolist() == exact.indices.tolist()
    documents.build_index()
    approximate = documents.search_rescored(
        CODES[:3], VECTORS[:3], 3, depth=41, exact=False, where={"lang": ["en", "de"]}
    )
    assert approximate.indices.tolist() == exact.indices.tolist()


def test_two_stages_leave_places_empty_and_refuse_mistakes(documents: PostgresStore) -> None:
    found = documents.search_rescored(CODES[:1], VECTORS[:1], 3, depth=10, where=["d0", "none", "d40"])
    assert found.indices.tolist() == [["d0", None, None]]  # no vector, and no cosine with zeros
    assert found.scores[0, 1] == -np.inf
    calls: list[tuple[dict[str, Any], str]] = [
        ({"depth": 2}, "depth must be"),
        ({"metric": "hamming"}, "metric must be"),
        ({"vector_column": "lang"}, "vector_column must be a column of vector or halfvec, but 'lang' has type text"),
        ({"vector_column": "vectors"}, "but 'vectors' is not there"),
        ({"where": {"town": "x"}}, "has no column 'town'"),
    ]
    for change, message in calls:
        with pytest.raises(ValueError, match=message):
            documents.search_rescored(CODES[:1], VECTORS[:1], 3, **({"depth": 10} | change))
    for vectors, message in ((VECTORS[:2], "a row for each of the 1 code"), (VECTORS[:1, :5], "different vector dim")):
        with pytest.raises(ValueError, match=message):
            documents.search_rescored(CODES[:1], vectors, 3, depth=10)
    with pytest.raises(ValueError, match="vectors contains NaN at row 0, column 0"):
        documents.search_rescored(CODES[:1], VECTORS[:1] * np.nan, 3, depth=10)
    with pytest.raises(ValueError, match=r"k must be an integer from 1 to the 42 item"):
        documents.search_rescored(CODES[:1], VECTORS[:1], 50, depth=60)


def test_the_statement_in_the_docs_runs_as_printed(documents: PostgresStore, database: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"```sql\n(SELECT.*?)```", page, re.DOTALL)
    text = documents.two_stage_sql(10, depth=100, where={"lang": "en"}, exact=False)
    assert printed.strip().replace("bit(64)", "bit(33)") == text
    code = "".join(map(str, np.unpackbits(CODES[0])[:33]))
    vector = "[" + ",".join(map(str, VECTORS[0].tolist())) + "]"
    statement = printed.replace("bit(64)", "bit(33)")
    found = database.execute(statement, {"code": code, "vector": vector}).fetchall()
    ours = documents.search_rescored(CODES[:1], VECTORS[:1], 10, depth=100, where={"lang": "en"})
    assert [row[0] for row in found] == ours.indices[0].tolist()
    np.testing.assert_allclose([row[1] for row in found], ours.scores[0])
