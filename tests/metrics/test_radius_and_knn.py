"""Metrics by radius and by the k nearest, against brute force; and `evaluate` against each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hashlearn.bits import pack_bits
from hashlearn.metrics import (
    AVERAGES,
    TIES,
    average_precision,
    evaluate,
    knn_accuracy,
    mean_average_precision,
    precision_at_k,
    precision_recall_curve,
    precision_within_radius,
    recall_at_k,
)
from tests.metrics.rankings import codes_at, distances_of, in_order


def problem(n_bits: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Codes and labels; queries of class 5 have nothing relevant."""
    rng = np.random.default_rng(seed)
    queries, database = (pack_bits(rng.random((n, n_bits)) < 0.3) for n in (40, 250))
    return queries, database, rng.integers(0, 6, 40), rng.integers(0, 5, 250)


@pytest.mark.parametrize("n_bits", [3, 16, 70])
@pytest.mark.parametrize("radius", [0, 1, 2, 16, 70, 10_000])
def test_precision_within_radius(n_bits: int, radius: int) -> None:
    queries, database, a, b = problem(n_bits)
    values = []
    for row, label in zip(distances_of(queries, database), a, strict=True):
        found = b[row <= radius]
        values.append(np.mean(found == label) if len(found) else 0.0)
    per_query = evaluate(queries, database, a, b, radius=radius).per_query["precision_within_radius"]
    np.testing.assert_allclose(per_query, values, rtol=0, atol=1e-15)
    assert precision_within_radius(queries, database, a, b, radius=radius) == pytest.approx(np.mean(values), abs=1e-14)


@pytest.mark.parametrize("k", [1, 7, 100, 250])
def test_precision_and_recall_at_k(k: int) -> None:
    queries, database, a, b = problem(9)
    precision, recall = [], []
    for row, label in zip(distances_of(queries, database), a, strict=True):
        hits = in_order(row, b == label)[:k].sum()
        precision.append(hits / k)
        recall.append(hits / max(1, (b == label).sum()))
    arguments = (queries, database, a, b)
    per_query = evaluate(*arguments, k=k, ties="stable").per_query
    np.testing.assert_allclose(per_query["precision_at_k"], precision, atol=1e-15)
    np.testing.assert_allclose(per_query["recall_at_k"], recall, atol=1e-15)
    assert precision_at_k(*arguments, k=k, ties="stable") == pytest.approx(np.mean(precision), abs=1e-14)
    assert recall_at_k(*arguments, k=k, ties="stable") == pytest.approx(np.mean(recall), abs=1e-14)


def test_expected_hits_at_k_by_hand() -> None:
    """Distances 0 | 1 1 1 1: the first is a hit; of the four, three are, and rank 3 takes two of them: 1 + 2 · 3/4."""
    query, database = codes_at([0, 1, 1, 1, 1])
    arguments = (query, database, [1], [1, 0, 1, 1, 1])
    assert precision_at_k(*arguments, k=3) == pytest.approx(2.5 / 3)
    assert recall_at_k(*arguments, k=3) == pytest.approx(2.5 / 4)
    assert precision_at_k(*arguments, k=3, ties="stable") == pytest.approx(2 / 3)


@pytest.mark.parametrize("k", [1, 2, 4, 30, 250])
@pytest.mark.parametrize("n_bits", [4, 40])
def test_knn_accuracy(k: int, n_bits: int) -> None:
    queries, database, a, b = problem(n_bits)
    right = 0
    for row, label in zip(distances_of(queries, database), a, strict=True):
        nearest = np.argsort(row, kind="stable")[:k]
        votes = {c: (-np.sum(b[nearest] == c), row[nearest][b[nearest] == c].sum(), c) for c in set(b[nearest])}
        right += min(votes, key=votes.__getitem__) == label
    assert knn_accuracy(queries, database, a, b, neighbors=k) == right / len(a)


def test_equal_votes_at_equal_distances_go_to_the_smaller_label() -> None:
    query, database = codes_at([1, 1, 5])
    assert knn_accuracy(query, database, [2], [3, 2, 2], neighbors=2) == 1.0


@pytest.mark.parametrize("n_bits", [5, 24])
def test_precision_recall_curve(n_bits: int) -> None:
    queries, database, a, b = problem(n_bits)
    distances, relevant = distances_of(queries, database), a[:, None] == b
    curve = precision_recall_curve(queries, database, a, b)
    np.testing.assert_array_equal(curve.radius, np.arange(8 * queries.shape[1] + 1))
    for radius in curve.radius:
        found = distances <= radius
        hits = (found & relevant).sum()
        assert curve.retrieved[radius] == found.sum()
        assert curve.precision[radius] == pytest.approx(hits / max(1, found.sum()))
        assert curve.recall[radius] == pytest.approx(hits / relevant.sum())


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("average", AVERAGES)
def test_evaluate_gives_what_the_functions_give(ties: str, average: str) -> None:
    arguments = problem(20)
    top_k = 100 if average == "top_k" else None
    found = evaluate(*arguments, ties=ties, average=average, top_k=top_k, radius=4, k=31, neighbors=5)
    assert found.mean_average_precision == mean_average_precision(*arguments, ties=ties, average=average, top_k=top_k)
    assert found.precision_within_radius == precision_within_radius(*arguments, radius=4)
    assert found.precision_at_k == precision_at_k(*arguments, k=31, ties=ties)
    assert found.recall_at_k == recall_at_k(*arguments, k=31, ties=ties)
    assert found.knn_accuracy == knn_accuracy(*arguments, neighbors=5)
    values = average_precision(*arguments, ties=ties, average=average, top_k=top_k)
    np.testing.assert_array_equal(found.per_query["average_precision"], values)
    for name, values in found.per_query.items():
        assert values.shape == (40,)
        assert values.mean() == getattr(found, "mean_" * (name == "average_precision") + name)
    curve = precision_recall_curve(*arguments)
    np.testing.assert_array_equal(found.curve.precision, curve.precision)
    np.testing.assert_array_equal(found.curve.recall, curve.recall)


def test_evaluate_leaves_out_what_is_not_asked_for() -> None:
    queries, database, a, b = problem(20)
    sets = np.eye(6, dtype=int)
    found = evaluate(queries, database, sets[a], sets[b])
    assert found.precision_at_k is found.recall_at_k is found.knn_accuracy is None
    assert found.mean_average_precision == mean_average_precision(queries, database, a, b)


def test_bad_input_is_refused() -> None:
    queries, database, a, b = arguments = problem(8)
    for radius in (-1, 1.5):
        with pytest.raises(ValueError, match=r"radius must be an integer of at least 0, got"):
            precision_within_radius(*arguments, radius=radius)
        with pytest.raises(ValueError, match=r"radius must be"):
            evaluate(*arguments, radius=radius)
    for function, name in ((precision_at_k, "k"), (recall_at_k, "k"), (knn_accuracy, "neighbors")):
        for count in (0, 251):
            with pytest.raises(ValueError, match=rf"{name} must be an integer from 1 to the 250 item\(s\)"):
                function(*arguments, **{name: count})
    with pytest.raises(ValueError, match=r"did you mean 'stable'\?"):
        precision_at_k(*arguments, k=3, ties="stabel")
    with pytest.raises(ValueError, match=r"labels must be 1-D, not 0/1 indicators"):
        knn_accuracy(queries, database, np.eye(6)[a], np.eye(6)[b])
    with pytest.raises(ValueError, match=r"neighbors must be an integer from 1"):
        evaluate(*arguments, neighbors=0)
