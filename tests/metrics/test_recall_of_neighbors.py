"""Recall of true neighbors in rankings, and exact float neighbors, against plain sorting."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn import metrics
from hashlearn.files import open_rows
from hashlearn.search import HammingIndex, asymmetric_search, rescore

RNG = np.random.default_rng(0)


def share_of_each(found, true):
    return [len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), true.tolist(), strict=True)]


@pytest.mark.parametrize(("k", "depth"), [(1, 1), (3, 3), (3, 7), (5, 2)])
def test_is_the_share_of_a_set(k, depth):
    found = np.array([RNG.choice(20, 8, replace=False) for _ in range(30)])
    true = np.array([RNG.choice(20, 6, replace=False) for _ in range(30)])
    expected = share_of_each(found[:, :depth], true[:, :k])
    assert metrics.recalls_of_neighbors(found, true, k=k, depth=depth) == pytest.approx(expected)
    assert metrics.recall_of_neighbors(found, true, k=k, depth=depth) == pytest.approx(np.mean(expected))


def test_blocks_of_queries_change_nothing(monkeypatch):
    found, true = RNG.permuted(np.tile(np.arange(9), (2, 25, 1)), axis=2)
    whole = metrics.recalls_of_neighbors(found, true, k=4)
    monkeypatch.setattr("hashlearn.metrics.recall.PAIRS_AT_ONCE", 50)
    assert np.array_equal(metrics.recalls_of_neighbors(found, true, k=4), whole)


def test_one_function_for_hamming_asymmetric_and_rescored_results():
    X = RNG.normal(size=(200, 16))
    codes, true = np.packbits(X > 0, axis=1), metrics.float_neighbors(X[:20], X, 10)
    index = HammingIndex(16)
    index.add(codes)
    hamming, scored = index.search(codes[:20], 50), asymmetric_search(X[:20], codes, 50)
    for result in (hamming, scored):
        again = rescore(result, X[:20], X, 10)
        reach = metrics.recall_of_neighbors(result, true, depth=50)
        assert metrics.recall_of_neighbors(again, true) == pytest.approx(reach)
        assert 0.1 < metrics.recall_of_neighbors(result, true) < reach < 1.0


def test_places_that_were_not_filled_count_nothing():
    assert metrics.recall_of_neighbors([[2, -1, -1]], [[2, 5, 6]], k=3) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("found", "true", "options", "message"),
    [
        ([1, 2], [[1, 2]], {"k": 1}, "results must be a search result or row numbers of shape"),
        ([[1.0]], [[1]], {"k": 1}, "results must be .* of type float64"),
        ([[1]], [[0.5]], {"k": 1}, "true must be row numbers"),
        ([[1], [2]], [[1]], {"k": 1}, "one row for each query, got shapes"),
        ([[1, 2]], [[1]], {"k": 2}, "k=2 needs as many columns of true"),
        ([[1]], [[1, 2]], {"k": 2}, "depth=2 needs as many columns of results"),
        ([[1, 2]], [[1, 2]], {"k": 2, "depth": 3}, "depth=3 needs as many columns of results"),
        ([[1, 2]], [[1, 2]], {"k": 0}, "k must be"),
        ([[1, 2]], [[1, -1]], {"k": 2}, "at least 0, got -1"),
        ([[1, 2]], [[1, 1]], {"k": 2}, "distinct"),
    ],
)
def test_bad_rankings(found, true, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.recall_of_neighbors(found, true, **options)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_float_neighbors_are_those_of_a_sort(metric, dtype, monkeypatch):
    monkeypatch.setattr("hashlearn.linalg.nearest.QUERIES", 10)
    monkeypatch.setattr("hashlearn.linalg.nearest.ROWS", 50)
    rows, queries = ((7.0 + 3.0 * RNG.normal(size=(n, 5))).astype(dtype) for n in (120, 33))
    a, b = queries.astype(float)[:, None], rows.astype(float)[None]
    if metric == "cosine":
        gaps = -(a * b).sum(axis=2) / (np.linalg.norm(a, axis=2) * np.linalg.norm(b, axis=2))
    else:
        gaps = ((a - b) ** 2).sum(axis=2)
    found = metrics.float_neighbors(queries, rows, 7, metric=metric)
    assert found.dtype == np.int64
    chosen = np.take_along_axis(gaps, found, axis=1)
    assert chosen == pytest.approx(np.sort(gaps, axis=1)[:, :7], abs=1e-12)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_equal_rows_come_in_their_order(metric):
    rows = np.repeat(RNG.normal(size=(6, 37)), 50, axis=0)[RNG.permutation(300)]
    found = metrics.float_neighbors(rows[:40], rows, 60, metric=metric)
    for query, nearest in zip(rows[:40], found, strict=True):
        same = np.flatnonzero((rows == query).all(axis=1))
        assert np.array_equal(nearest[:50], same)


def test_a_row_of_zeros_has_cosine_0():
    assert metrics.float_neighbors([[1.0, 0.0]], [[-1.0, 0.0], [0.0, 0.0], [3.0, 0.0]], 3).tolist() == [[2, 1, 0]]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("scale", [1e-160, 1e-170, 1e-300, 1e100])
def test_units_change_no_neighbor(metric, scale):
    rows, queries = RNG.normal(size=(80, 6)), RNG.normal(size=(9, 6))
    expected = metrics.float_neighbors(queries, rows, 10, metric=metric)
    assert np.array_equal(metrics.float_neighbors(scale * queries, scale * rows, 10, metric=metric), expected)
    every = np.tile(np.arange(80), (9, 1))
    rescored = rescore(every, scale * queries, scale * rows, 10, metric="l2" if metric == "euclidean" else metric)
    assert np.array_equal(rescored.indices, expected)


def test_lengths_of_single_rows_change_no_cosine():
    rows, lengths = RNG.normal(size=(80, 6)), 10.0 ** RNG.uniform(-300, 100, (80, 1))
    expected = metrics.float_neighbors(rows[:9], rows, 10)
    assert np.array_equal(metrics.float_neighbors(rows[:9], lengths * rows, 10), expected)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_columns_in_another_order_are_refused(package, tmp_path):
    module = pytest.importorskip(package)
    rows = RNG.normal(size=(30, 3))

    def frame(names):
        return (module.table if package == "pyarrow" else module.DataFrame)(
            {name: rows[:, "abc".index(name)] for name in names}
        )

    file = tmp_path / "rows.csv"
    np.savetxt(file, rows, delimiter=",", header="a,b,c", comments="")
    message = "must have the columns of database{} in the same order, got 'c' as column 1 instead of 'b'"
    with pytest.raises(ValueError, match="queries " + message.format("")):
        metrics.float_neighbors(frame("acb"), frame("abc"), 3)
    for database in (frame("abc"), open_rows(file)):
        with pytest.raises(ValueError, match="query_vectors " + message.format("_vectors")):
            rescore(np.zeros((30, 1), int), frame("acb"), database, 1)
        rescore(np.zeros((30, 1), int), rows, database, 1)
    assert np.array_equal(metrics.float_neighbors(frame("abc"), rows, 3), metrics.float_neighbors(rows, rows, 3))


def test_large_offsets_do_not_hide_distances():
    rows = 1e6 + RNG.normal(size=(50, 3))
    expected = np.argsort(((rows[:5, None] - rows) ** 2).sum(axis=2), axis=1)
    assert np.array_equal(metrics.float_neighbors(rows[:5], rows, 50, metric="euclidean"), expected)


@pytest.mark.parametrize(
    ("queries", "database", "k", "metric", "message"),
    [
        ([[1.0]], [[1.0]], 2, "cosine", "k"),
        ([[1.0]], [[1.0, 2.0]], 1, "cosine", "the same number of columns"),
        ([[np.nan]], [[1.0]], 1, "cosine", "queries must be finite"),
        ([[1.0]], [1.0], 1, "cosine", "database must have 2 dimension"),
        ([[1.0]], [[1.0]], 1, "cosin", "did you mean 'cosine'"),
    ],
)
def test_bad_vectors(queries, database, k, metric, message):
    with pytest.raises(ValueError, match=message):
        metrics.float_neighbors(queries, database, k, metric=metric)
