"""`RankingHasher`: neighbors kept on rows it has not seen, labels, queries, odd rows, and bad input."""

from __future__ import annotations

import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from hashlearn import RankingHasher, metrics
from hashlearn.hashers.ranking import sampling
from hashlearn.linalg.nearest import nearest_rows
from tests.hashers.supervised_laws import X, Y, check_bad_parameters_are_named

DATABASE, NEW = X[:800], X[800:]
UPPER_HALF = np.arange(64) < 32


def quick(n_bits: int = 16, **changes: Any) -> RankingHasher:
    settings = {"encoder": "linear", "n_steps": 10, "hidden": 16, "batch_size": 64, "random_state": 0}
    return RankingHasher(n_bits, **{**settings, **changes})


def trained(n_steps: int = 100, **changes: Any) -> RankingHasher:
    return quick(24, **{"n_steps": n_steps, "hidden": 32, "batch_size": 256, **changes})


@cache
def on_digits(**changes: Any) -> RankingHasher:
    return trained(**changes).fit(DATABASE)


def recall(hasher: RankingHasher, queries: np.ndarray = NEW) -> float:
    """Recall@10 of the float neighbors in the database, by Hamming distance."""
    sizes = [
        np.linalg.norm(rows, axis=1, keepdims=True) if hasher.metric == "cosine" else 1.0
        for rows in (queries, DATABASE)
    ]
    true = nearest_rows((queries / sizes[0]).astype(np.float32), (DATABASE / sizes[1]).astype(np.float32), 10)
    return metrics.neighbor_recall(hasher.encode(queries), hasher.encode(DATABASE), true)


def same_codes(one: RankingHasher, other: RankingHasher) -> bool:
    return np.array_equal(one.encode(NEW), other.encode(NEW))


# ---- what is learned ----


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_new_rows_find_more_of_their_neighbors_than_at_the_start(encoder, metric):
    before, after = on_digits(n_steps=0, encoder=encoder, metric=metric), on_digits(encoder=encoder, metric=metric)
    assert recall(after) > recall(before) + 0.02
    report = after.ranking_report_
    assert report.before is not None
    assert report.after is not None
    assert report.after.recall > report.before.recall
    assert report.checks[0] == before.ranking_report_.checks[0]
    assert (report.n_rows, report.n_anchors, report.n_held_out, report.n_steps) == (800, 760, 40, 100)
    for part in (f"{encoder} encoder: 800 rows", "recall@10 of 40 held-out rows", f"kept step {report.kept_step}"):
        assert part in str(report)


def test_the_start_is_the_signs_of_principal_components():
    codes = on_digits(n_steps=0, metric="euclidean").transform(NEW)
    rows = np.sort(np.random.default_rng(0).permutation(800)[40:])  # those that are not kept out
    center = DATABASE[rows].mean(axis=0)
    axes = np.linalg.svd(DATABASE[rows] - center, full_matrices=False)[2][:24]
    equal = np.mean(codes == ((NEW - center) @ axes.T >= 0), axis=0)
    assert np.maximum(equal, 1 - equal).min() > 0.98  # an axis has no sign


def test_cosine_ignores_the_length_of_rows_and_euclidean_does_not():
    lengths = np.random.default_rng(0).choice([0.25, 3.0, 64.0], (len(NEW), 1))
    hasher = on_digits(encoder="mlp", metric="cosine")
    np.testing.assert_array_equal(hasher.encode(lengths * NEW), hasher.encode(NEW))
    other = on_digits(encoder="mlp", metric="euclidean")
    assert np.mean(other.transform(lengths * NEW) == other.transform(NEW)) < 0.9
    scaled = quick(metric="euclidean").fit(64.0 * DATABASE)  # a power of two changes no rounding
    np.testing.assert_array_equal(scaled.encode(64.0 * NEW), quick(metric="euclidean").fit(DATABASE).encode(NEW))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.uint8, ">f8"])
def test_digits_of_any_dtype_give_the_same_codes(dtype):
    assert same_codes(quick().fit(DATABASE.astype(dtype)), quick().fit(DATABASE))
    hasher = on_digits(encoder="linear", metric="cosine")
    assert np.mean(hasher.transform(NEW.astype(dtype)) == hasher.transform(NEW)) > 0.999


def test_more_bits_than_features():
    few = DATABASE[:, 26:30]
    hasher = quick(40, metric="euclidean", n_steps=0).fit(few)
    codes = hasher.transform(few)
    assert codes.shape == (800, 40)
    assert len(np.unique(codes, axis=1).T) > 30
    learned = quick(40, metric="euclidean", n_steps=60, batch_size=256).fit(few).ranking_report_
    # What the parameters that are kept gain. Checks rise and fall, and the last one may be lower than the start.
    assert learned.after.recall > learned.before.recall


# ---- labels ----


def precision(hasher: RankingHasher) -> float:
    return metrics.mean_average_precision(hasher.encode(NEW), hasher.encode(DATABASE), Y[800:], Y[:800])


def test_labels_bring_rows_of_one_class_nearer():
    hasher = trained(encoder="mlp", hidden=64, label_weight=0.5)
    without = precision(hasher.fit(DATABASE))
    for y in (Y[:800], np.where(np.arange(800) % 2, Y[:800], -1)):
        assert precision(hasher.fit(DATABASE, y)) > without + 0.03


def test_labels_that_say_nothing_change_nothing():
    expected = quick().fit(DATABASE)
    assert same_codes(quick().fit(DATABASE, np.full(800, -1)), expected)
    assert same_codes(quick(label_weight=0).fit(DATABASE, Y[:800]), expected)
    assert not same_codes(quick(n_steps=40, temperature=0.033).fit(DATABASE, Y[:800]), quick(n_steps=40).fit(DATABASE))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(800) < 9, 3, -1), "y holds only one class"),
        (np.eye(10)[Y[:800]], "RankingHasher needs one class for each sample"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(DATABASE, y)


# ---- queries ----


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_queries_that_look_different_find_more_if_examples_are_given(encoder):
    """The lower half of every query is missing."""
    queries, new = X[800:1300] * UPPER_HALF, X[1300:] * UPPER_HALF
    hasher = trained(200, encoder=encoder, hidden=64)
    without = recall(hasher.fit(DATABASE), new)
    assert recall(hasher.fit(DATABASE, queries=queries), new) > without + 0.02
    report = hasher.ranking_report_
    assert (report.n_rows, report.n_anchors, report.n_held_out) == (800, 760 + 475, 40 + 25)


def test_queries_can_be_found_in_every_other_batch():
    found = sampling.draw_sample(DATABASE, NEW[:100], Y[:800], np.random.default_rng(0), "cosine", 5, 10, 0.1)
    assert found.nearest.shape == (760 + 92, 5)
    assert found.nearest.max() < found.n_database == 760
    batches = found.batches(64, 0.1, np.random.default_rng(0))
    assert next(batches).queries is None
    batch = next(batches)
    np.testing.assert_array_equal(batch.queries, batch.indices >= 760)
    assert batch.queries.sum() == 4  # half of the anchors
    assert not batch.queries[8:].any()
    assert (batch.labels[batch.queries] == -1).all()
    assert found.held_out is not None
    assert len(found.held_out.rows) == 40 + 8


@pytest.mark.parametrize("n_rows", [2, 60, 200])
@pytest.mark.parametrize("n_queries", [1, 79, 100])
def test_any_number_of_rows_and_queries(n_rows, n_queries):
    y = Y[:n_rows] if n_rows > 2 else None
    hasher = quick(2, n_steps=3).fit(DATABASE[:n_rows], y, queries=NEW[:n_queries])
    report = hasher.ranking_report_
    assert report.n_held_out == (10 if n_rows == 200 else 0) + (8 if n_queries == 100 else 0)
    assert report.n_rows + n_queries == report.n_anchors + report.n_held_out
    assert hasher.encode(NEW).shape == (997, 1)


@pytest.mark.parametrize(
    ("queries", "error", "message"),
    [
        (NEW[:, :5], ValueError, "queries has 5 features, but RankingHasher is expecting 64 features"),
        (NEW * np.nan, ValueError, "queries contains NaN at row 0, column 0"),
        (NEW * 1e30, ValueError, "queries has an entry of size .*whose square overflows"),
        (NEW[0], ValueError, "queries cannot be used: Expected 2D array"),
        (NEW[:0], ValueError, "queries cannot be used: it has no rows"),
        ([["a"] * 64], ValueError, "queries cannot be used: .*no numbers in column 0"),
        (sp.csr_array(NEW), TypeError, "queries must be of the kind of X, ndarray, got csr_array"),
    ],
)
def test_bad_queries_are_named(queries, error, message):
    with pytest.raises(error, match=message):
        quick().fit(DATABASE, queries=queries)


def test_queries_have_the_columns_of_a_data_frame():
    frame = pd.DataFrame(DATABASE, columns=[f"pixel {i}" for i in range(64)])
    asked = frame[:100]
    assert same_codes(quick().fit(frame.to_numpy(), queries=asked.to_numpy()), quick().fit(DATABASE, queries=X[:100]))
    with pytest.raises(ValueError, match="queries cannot be used: The feature names should match"):
        quick().fit(frame, queries=asked.rename(columns={"pixel 3": "other"}))


# ---- odd rows ----


def test_too_few_rows_keep_the_start():
    hasher = quick().fit(X[:79])
    report = hasher.ranking_report_
    assert (report.ending, report.checks) == ("too few rows to keep some out: the start is used", [])
    assert (report.before, report.after, report.n_held_out) == (None, None, 0)
    assert "recall" not in str(report)
    assert same_codes(hasher, quick(n_steps=0).fit(X[:79]))
    assert [check.step for check in quick(n_steps=2).fit(X[:80]).ranking_report_.checks] == [0, 1, 2]


@pytest.mark.filterwarnings("ignore:all 200 rows of X are equal")
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_equal_rows_have_one_code(metric):
    for value in (0.0, 0.1, 1e15):
        rows = np.full((200, 7), value)
        hasher = quick(metric=metric).fit(rows)
        assert hasher.ranking_report_.ending == "all rows are equal: the start is used"
        assert len(np.unique(hasher.encode(rows), axis=0)) == 1
        assert np.isfinite(hasher.decision_function(DATABASE[:, :7])).all()


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_zero_rows_among_others(metric):
    rows = DATABASE.copy()
    rows[::5] = 0.0
    hasher = quick(metric=metric, n_steps=30).fit(rows)
    assert np.isfinite(hasher.decision_function(rows)).all()
    assert len(np.unique(hasher.encode(rows[::5]), axis=0)) == 1
    assert len(np.unique(hasher.encode(rows), axis=0)) > 300


def test_rows_that_all_occur_many_times():
    rows = np.tile(DATABASE[:10], (30, 1))
    hasher = quick(4, n_steps=30).fit(rows, np.tile(Y[:10] % 3, 30))
    assert np.isfinite(hasher.decision_function(rows)).all()
    np.testing.assert_array_equal(hasher.encode(rows[:10]), hasher.encode(rows[-10:]))


@pytest.mark.parametrize("n_neighbors", [1, 3, 99, 5000])
def test_more_neighbors_than_rows_are_all_rows(n_neighbors):
    hasher = quick(n_neighbors=n_neighbors).fit(X[:100])
    assert hasher.ranking_report_.n_anchors == 92
    if n_neighbors > 91:
        assert same_codes(hasher, quick(n_neighbors=91).fit(X[:100]))


def test_bad_parameters_are_named():
    bad = {
        "encoder": "mpl", "metric": "manhattan", "label_weight": -1, "temperature": 0, "hidden": 0, "n_steps": -1,
        "batch_size": 8, "n_neighbors": 0, "noise": "none", "time_limit": 0, "random_state": "seed",
    }  # fmt: skip
    check_bad_parameters_are_named(quick, **bad)
    with pytest.raises(ValueError, match="did you mean 'mlp'"):
        quick(encoder="mpl").fit(DATABASE)


def test_many_rows_are_sampled_and_not_copied(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((30_000, 64))
    quick().fit(rows[:300], queries=rows[:300])  # compile first
    monkeypatch.setattr(sampling, "RANKED_ROWS", 200)
    monkeypatch.setattr(sampling, "RANKED_ANCHORS", 50)
    tracemalloc.start()
    hasher = quick().fit(rows, np.arange(30_000) % 7, queries=rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    report = hasher.ranking_report_
    assert (report.n_rows, report.n_anchors, report.n_held_out) == (200, 100, 10 + 400)
    assert peak < 0.5 * rows.nbytes


# ---- progress and interrupts ----


def test_progress_is_told_after_every_step():
    told: list[Any] = []
    quick(progress=told.append, n_steps=3).fit(DATABASE)
    assert [(step.stage, step.fraction) for step in told[:2]] == [("neighbors", 0.0), ("ranking", 1 / 3)]
    assert [(step.done, step.total) for step in told[1:]] == [(1, 3), (2, 3), (3, 3)]


def test_an_interrupted_fit_leaves_an_unfitted_hasher_that_can_be_fitted():
    def stop(step: Any) -> None:
        if step.done == 3:
            raise KeyboardInterrupt

    hasher = quick(progress=stop)
    for rows in (DATABASE, DATABASE[:, :30]):
        with pytest.raises(KeyboardInterrupt):
            hasher.fit(rows)
        with pytest.raises(NotFittedError):
            hasher.encode(rows)
        assert not hasattr(hasher, "ranking_report_")
        hasher.set_params(progress=None).fit(DATABASE)
        check_is_fitted(hasher)
        assert same_codes(hasher, quick().fit(DATABASE))
        hasher.set_params(progress=stop)
