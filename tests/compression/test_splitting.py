"""Rows and queries: what is left out, what is refused, and that a split can be repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hashlearn.compression.promise import fewest_values
from hashlearn.compression.splitting import (
    CHOOSING_SHARE,
    MOST_QUERIES,
    ROWS_PER_QUERY,
    Split,
    digest,
    split_rows,
)
from hashlearn.metrics import float_neighbors

N, N_FEATURES, NEEDED = 1200, 6, 58  # NEEDED: queries for a recall of 0.9 at a confidence of 0.99, choosing ones too
X = np.random.default_rng(0).normal(size=(N, N_FEATURES))
QUERIES = np.random.default_rng(1).normal(size=(200, N_FEATURES))


def split(rows: Any = X, queries: Any = QUERIES, y: Any = None, seed: int = 0, **changed: Any) -> Split:
    options: dict[str, Any] = {"recall": 0.9, "confidence": 0.99, "k": 10, "metric": "cosine", "n_queries": None}
    options |= {"max_rows": 100_000, "seed": seed, **changed}
    return split_rows(rows, y, queries, **options)


def test_given_queries_leave_all_rows_in_the_database() -> None:
    made = split()
    np.testing.assert_array_equal(made.database, X)
    np.testing.assert_array_equal(made.database_rows, np.arange(N))
    assert len(made.choosing) == 200 // CHOOSING_SHARE
    together = np.concatenate([made.choosing, made.testing])
    assert {row.tobytes() for row in together} == {row.tobytes() for row in QUERIES}
    np.testing.assert_array_equal(made.testing, QUERIES[made.testing_rows])


def test_without_queries_rows_are_kept_out() -> None:
    made = split(queries=None)
    count = N // ROWS_PER_QUERY
    assert (len(made.database), len(made.testing)) == (N - count, count - count // CHOOSING_SHARE)
    assert not set(made.database_rows) & set(made.testing_rows)
    np.testing.assert_array_equal(made.testing, X[made.testing_rows])
    np.testing.assert_array_equal(made.database, X[made.database_rows])
    assert made.n_rows == N


def test_there_is_a_most_of_rows_that_are_kept_out() -> None:
    many = np.random.default_rng(0).normal(size=(ROWS_PER_QUERY * MOST_QUERIES + 800, 2))
    assert len(many) - len(split(many, None, k=1).database_rows) == MOST_QUERIES
    assert len(many) - len(split(many, None, k=1, n_queries=3000).database_rows) == 3000


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_neighbors_are_the_nearest_floats(metric: str) -> None:
    rows = split(metric=metric, k=7)
    for queries, true in ((rows.choosing, rows.true_choosing), (rows.testing, rows.true_testing)):
        np.testing.assert_array_equal(true, float_neighbors(queries, rows.database, 7, metric=metric))
    assert rows.k == 7


def test_queries_that_equal_a_row_are_left_out_with_a_warning() -> None:
    rows = X.copy()
    rows[0, 0], copies = 0.0, X[:30].copy()
    copies[0, 0] = -0.0  # the same number
    with pytest.warns(UserWarning, match="30 of 230 queries equal a database row.*recall is that of the others"):
        made = split(rows, np.concatenate([QUERIES, copies]))
    assert len(made.choosing) + len(made.testing) == 200
    assert made.testing_rows.max() < 200


def test_rows_kept_out_that_have_a_copy_are_left_out_too() -> None:
    twice = np.concatenate([X, X[:300]])
    with pytest.warns(UserWarning, match=r"\d+ of 187 rows kept out as queries equal a database row"):
        made = split(twice, None)
    database = {row.tobytes() for row in made.database}
    assert not any(row.tobytes() in database for row in made.testing)


def test_zero_queries_are_left_out_for_cosine_alone() -> None:
    queries = QUERIES.copy()
    queries[:5] = 0.0
    with pytest.warns(UserWarning, match="5 of 200 queries are zero: no cosine"):
        made = split(queries=queries)
    assert made.choosing.any(axis=1).all()
    assert made.testing.any(axis=1).all()
    with pytest.warns(UserWarning, match="only 196 of 200 queries are distinct"):
        made = split(queries=queries, metric="euclidean")
    assert len(made.choosing) + len(made.testing) == 200


def test_too_few_queries_say_how_many_it_takes() -> None:
    enough = split(queries=QUERIES[:NEEDED])
    assert len(enough.testing) >= fewest_values(0.9, 0.99)
    with pytest.raises(ValueError, match=f"takes at least {NEEDED} queries, .* there are {NEEDED - 1}.* Give more"):
        split(queries=QUERIES[: NEEDED - 1])
    with pytest.raises(ValueError, match=r"takes at least 599 queries.*n_queries says so"):
        split(queries=None, recall=0.99, n_queries=300)
    with pytest.raises(ValueError, match=r"there are 150.*one row in 8 of X is kept out"):
        split(queries=None, recall=0.99)
    with pytest.warns(UserWarning, match="left out"), pytest.raises(ValueError, match=f"there are {NEEDED - 1}"):
        split(queries=np.concatenate([QUERIES[: NEEDED - 1], X[:50]]))


def test_a_sample_of_the_rows_is_the_database() -> None:
    made = split(y=np.arange(N) % 3, max_rows=500)
    assert len(made.database) == 500
    assert (np.diff(made.database_rows) > 0).all()
    np.testing.assert_array_equal(made.database, X[made.database_rows])
    np.testing.assert_array_equal(made.labels, made.database_rows % 3)
    assert made.n_rows == N


def test_the_seed_decides_the_split() -> None:
    one, same, other = (split(queries=None, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.database, same.database)
    np.testing.assert_array_equal(one.choosing, same.choosing)
    np.testing.assert_array_equal(one.testing_rows, same.testing_rows)
    assert digest(one.database) == digest(same.database) != digest(other.database)
    assert digest(split(seed=3).database) == digest(split(seed=4).database) == digest(X)  # given queries leave all rows
    assert set(one.testing_rows) != set(other.testing_rows)


def test_a_digest_is_of_numbers_type_and_shape() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    same = np.asfortranarray(rows)
    changed = rows.copy()
    changed[0, 0] = 1e-300
    others = (changed, rows.astype(np.float32), rows.reshape(4, 3), rows[:2])
    assert digest(rows) == digest(same)
    assert len({digest(rows), *map(digest, others)}) == 5


def test_inputs_stay_as_they_were_and_any_kind_is_taken() -> None:
    before = X.copy(), QUERIES.copy()
    split()
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(QUERIES, before[1])
    assert split(X.astype(np.float32), QUERIES.astype(np.float32)).database.dtype == np.float32
    assert split((100 * X).astype(int)).database.dtype == np.float64


BROKEN = X.copy()
BROKEN[3, 2] = np.nan


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rows": BROKEN}, "X contains NaN"),
        ({"queries": np.full((100, N_FEATURES), np.inf)}, "queries contains infinity"),
        ({"rows": 1e19 * X}, "X has an entry of size .*scale it below"),
        ({"rows": np.ones((N, N_FEATURES))}, "X must have distinct rows; all of its rows are equal"),
        ({"queries": QUERIES[:, :4]}, "queries and X must have the same number of columns, got 4 and 6"),
        ({"k": N + 1}, f"k must be an integer from 1 to the {N} item"),
        ({"k": 0}, "k must be an integer from 1"),
        ({"k": 2.5}, "k must be an integer from 1"),
        ({"max_rows": 1}, "max_rows must be an integer of at least 2, got 1"),
        ({"n_queries": 0}, "n_queries must be an integer of at least 1, got 0"),
        ({"queries": None, "n_queries": N}, f"n_queries must be an integer from 1 to {N - 2}"),
        ({"y": np.zeros(3, int)}, "3"),
        ({"rows": X[0]}, "in 2 dimensions"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split(**changed)
