"""Settings to copy carry the right numbers, and run in the engines that they are for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hashlearn
from hashlearn.bits import hamming_distances
from hashlearn.compression import compress
from hashlearn.compression.engine_settings import engine_settings, hamming_depth
from hashlearn.compression.result import Compression
from tests.compression import plans
from tests.search import server
from tests.search.codes import engine

X, QUERIES = plans.rows(), plans.rows(20, seed=1)


def snippet(plan: Compression, name: str) -> str:
    return next(text for engine, text in engine_settings(plan).items() if engine.startswith(name))


def test_engines_get_the_depth_of_a_search_by_hamming_distance() -> None:
    plan = plans.plan()
    assert hamming_depth(plan) == plans.HAMMING_DEPTH
    assert hamming_depth(plans.plan(mode="hamming")) == plans.DEPTH
    for text in (snippet(plan, "FAISS"), snippet(plan, "Postgre"), snippet(plan, "SQLite")):
        assert str(plans.HAMMING_DEPTH) in text
        assert str(plans.DEPTH) not in text


def test_without_a_depth_there_is_no_setting() -> None:
    plan = plans.plan()
    for rows in (plans.only("asymmetric"), plans.without_depths()):
        assert hamming_depth(replace(plan, frontier=rows)) is None
        assert list(engine_settings(replace(plan, frontier=rows))) == ["hashlearn"]


def test_codes_alone_are_searched_for_k_where_their_bound_allows_it() -> None:
    plan = plans.plan(keep_floats=False, promised=0.6, recall=0.6)
    assert hamming_depth(plan) == plans.K
    assert hamming_depth(plans.plan(keep_floats=False)) is None
    for text in engine_settings(plan).values():
        assert "embedding" not in text
        assert "rescore" not in text


def test_the_hashlearn_setting_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan = compress(X, recall=0.5, families=["pca_sign"], max_bytes=4)
    names: dict[str, Any] = {"plan": plan, "X": X, "queries": QUERIES}
    text = snippet(plan, "hashlearn")
    exec(text, names)
    assert names["found"].indices.shape == (len(QUERIES), 10)
    later = text.splitlines()[0].partition("plan = ")[2]
    loaded = eval(later, {"hashlearn": hashlearn})
    assert loaded.certificate == plan.certificate
    loaded.page("page.html")
    assert "files do not store them" in Path("page.html").read_text("utf-8")


def require_best_of_the_candidates(found: Any, plan: Compression, metric: str = "cosine") -> None:
    """Each row found is among the nearest codes, and every true neighbor that surely is among them is found."""
    far = hamming_distances(plan.hasher.encode(QUERIES), plan.hasher.encode(X))
    last = np.sort(far, axis=1)[:, plans.HAMMING_DEPTH - 1]
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (QUERIES, X)]
    score = unit[0] @ unit[1].T if metric == "cosine" else -np.linalg.norm(QUERIES[:, None] - X, axis=2)
    true = np.argsort(-score, axis=1)[:, : plans.K]
    assert np.shape(found) == (len(QUERIES), plans.K)
    lost = 0
    for query, rows in enumerate(np.asarray(found)):
        assert far[query, rows].max() <= last[query]
        assert {row for row in true[query] if far[query, row] < last[query]} <= set(rows)
        assert (np.diff(score[query, rows]) <= 1e-6).all()
        lost += len(set(true[query]) - set(rows))
    assert lost  # else the number of candidates would not matter


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_faiss_setting_runs(metric: str) -> None:
    engine("faiss")
    plan = plans.plan(metric=metric)
    names: dict[str, Any] = {"plan": plan, "X": X, "queries": QUERIES}
    exec(snippet(plan, "FAISS"), names)
    require_best_of_the_candidates(names["found"], plan, metric)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_sqlite_setting_runs(metric: str) -> None:
    apsw, sqlite_vec = engine("apsw"), engine("sqlite_vec")
    plan = plans.plan(metric=metric)
    connection = apsw.Connection(":memory:")
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    tables, query = snippet(plan, "SQLite").split("\n\n")
    connection.execute(tables)
    codes = plan.hasher.encode(X)
    connection.executemany("INSERT INTO codes VALUES (?, vec_bit(?))", ((i, c.tobytes()) for i, c in enumerate(codes)))
    connection.executemany("INSERT INTO items VALUES (?, ?)", ((i, x.tobytes()) for i, x in enumerate(X)))
    found = [
        [row for (row,) in connection.execute(query, {"code": c.tobytes(), "query": q.tobytes()})]
        for c, q in zip(plan.hasher.encode(QUERIES), QUERIES, strict=True)
    ]
    require_best_of_the_candidates(found, plan, metric)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_postgres_setting_runs(metric: str) -> None:
    psycopg = engine("psycopg")
    plan = plans.plan(metric=metric)
    tables, query = snippet(plan, "Postgre").split("\n\n")
    with psycopg.connect(server.start()) as connection:  # rolled back below
        connection.execute(tables)
        with connection.cursor() as cursor:
            texts = ["".join(map(str, bits)) for bits in plan.hasher.transform(X)]
            rows = [(i, text, str(x.tolist())) for i, (text, x) in enumerate(zip(texts, X, strict=True))]
            cursor.executemany("INSERT INTO items VALUES (%s, %s, %s)", rows)
        asked = [
            {"code": "".join(map(str, bits)), "query": str(q.tolist())}
            for bits, q in zip(plan.hasher.transform(QUERIES), QUERIES, strict=True)
        ]
        found = [[row for (row,) in connection.execute(query, values)] for values in asked]
        graph = [line.removeprefix("-- ") for line in tables.splitlines() if line.startswith(("-- CREATE", "-- SET"))]
        assert len(graph) == 2
        connection.execute("\n".join([*graph, "SET enable_seqscan = off;"]))
        plain = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {query}", asked[0]))
        assert "items_code_idx" in plain
        assert len(connection.execute(query, asked[0]).fetchall()) == plans.K
        connection.rollback()
    require_best_of_the_candidates(found, plan, metric)
