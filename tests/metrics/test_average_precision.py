"""Average precision: each convention and tie rule by hand, against all orders of ties, and against a plain sort."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn.bits import pack_bits
from hashlearn.metrics import AVERAGES, TIES, average_precision, mean_average_precision
from tests.metrics.rankings import codes_at, distances_of, in_order, ranked_value

# Distances 0 | 1 1 1 | 2 with relevance 0 | 0 1 0 | 1 in database order: R = 2, hits at rank 5 always.
# The hit at distance 1 is at rank 3 (stable), or at rank 2, 3 or 4 with 1/3 each (expected).
# Precision at it 1/3, 1/2, 1/4, and one rank before it 0 in all cases; at rank 5 precision 2/5, one before 1/4.
HAND_DISTANCES, HAND_RELEVANT = [0, 1, 1, 1, 2], [0, 0, 1, 0, 1]
AT_HIT = {"stable": F(1, 3), "expected": F(13, 36)}


@pytest.mark.parametrize("ties", TIES)
def test_by_hand_whole_ranking(ties: str) -> None:
    plain = (AT_HIT[ties] + F(2, 5)) / 2
    trapezoid = (AT_HIT[ties] / 2 + (F(1, 4) + F(2, 5)) / 2) / 2
    assert hand(ties, "plain") == pytest.approx(float(plain), abs=1e-15)
    assert hand(ties, "trapezoid") == pytest.approx(float(trapezoid), abs=1e-15)


@pytest.mark.parametrize("ties", TIES)
def test_by_hand_first_three(ties: str) -> None:
    """top_k = 3: the hit is at rank 4 once in three, which is out; min(R, K) = 2."""
    at_hit = {**AT_HIT, "expected": (F(1, 2) + F(1, 3)) / 3}[ties]
    assert hand(ties, "plain", 3) == pytest.approx(float(at_hit / 2), abs=1e-15)
    assert hand(ties, "trapezoid", 3) == pytest.approx(float(at_hit / 4), abs=1e-15)
    assert hand(ties, "top_k", 3) == pytest.approx(float(at_hit), abs=1e-15)  # at most one hit to divide by


def hand(ties: str, average: str, top_k: int | None = None) -> float:
    query, database = codes_at(HAND_DISTANCES)
    return mean_average_precision(query, database, [1], HAND_RELEVANT, ties=ties, average=average, top_k=top_k)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=7), st.data())
def test_expected_is_the_mean_over_all_orders(items: list[tuple[int, bool]], data: Any) -> None:
    items.sort(key=lambda item: item[0])
    top_k = data.draw(st.none() | st.integers(1, len(items)))
    groups = [[rel for d, rel in items if d == distance] for distance in range(3)]
    orders = [
        np.array([rel for group in order for rel in group])
        for order in itertools.product(*(itertools.permutations(group) for group in groups))
    ]
    query, database = codes_at([d for d, _ in items])
    for average in ["plain", "trapezoid"] + (["top_k"] if top_k else []):
        mean = np.mean([ranked_value(order, average, top_k) for order in orders])
        value = mean_average_precision(
            query, database, [1], [int(rel) for _, rel in items], average=average, top_k=top_k
        )
        assert value == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize("n_bits", [1, 6, 32, 64, 100])
@pytest.mark.parametrize("top_k", [None, 1, 60, 300])
def test_against_a_plain_sort(n_bits: int, top_k: int | None) -> None:
    rng = np.random.default_rng(n_bits)
    queries, database = (pack_bits(rng.random((n, n_bits)) < 0.4) for n in (23, 300))
    query_labels, database_labels = rng.integers(0, 6, 23), rng.integers(0, 5, 300)  # class 5 has nothing relevant
    distances = distances_of(queries, database)
    for average in AVERAGES:
        if average == "top_k" and top_k is None:
            continue
        expected = [
            ranked_value(in_order(row, database_labels == label), average, top_k)
            for row, label in zip(distances, query_labels, strict=True)
        ]
        options = {"ties": "stable", "average": average, "top_k": top_k}
        arguments = (queries, database, query_labels, database_labels)
        np.testing.assert_allclose(average_precision(*arguments, **options), expected, rtol=0, atol=1e-12)
        assert mean_average_precision(*arguments, **options) == pytest.approx(np.mean(expected), abs=1e-12)


def test_expected_top_k_with_a_large_cut_distance() -> None:
    """All items at one distance: E[Σ P(i) rel(i) / hits] over 400 places, against the sum by probabilities."""
    n, r, top_k = 400, 150, 37
    query, database = codes_at([3] * n)
    value = mean_average_precision(query, database, [1], [1] * r + [0] * (n - r), average="top_k", top_k=top_k)
    expected = F(0)
    ways = [F(binomial(r, h) * binomial(n - r, top_k - h), binomial(n, top_k)) for h in range(top_k + 1)]
    for h in range(1, top_k + 1):
        q = F(h - 1, top_k - 1)
        inside = F(h, top_k) * sum((1 + (t - 1) * q) / t for t in range(1, top_k + 1))
        expected += ways[h] * inside / h
    assert value == pytest.approx(float(expected), abs=1e-12)


def binomial(n: int, k: int) -> int:
    return int(np.prod([F(n - i, i + 1) for i in range(k)], initial=F(1)))


def test_far_ranks_lose_no_precision() -> None:
    """Two relevant items tied after 200,000 others: (1/(N+1) + 2/(N+2)) / 2, whatever the order."""
    n = 200_000
    query, database = codes_at([0, 9])
    database = np.repeat(database, [n, 2], axis=0)
    labels = np.repeat([0, 1], [n, 2])
    exact = float((F(1, n + 1) + F(2, n + 2)) / 2)
    for ties in TIES:
        assert mean_average_precision(query, database, [1], labels, ties=ties) == pytest.approx(exact, rel=1e-10)


def test_labels_of_any_kind_and_sets_of_labels() -> None:
    rng = np.random.default_rng(8)
    queries, database = rng.integers(0, 256, (11, 2), dtype=np.uint8), rng.integers(0, 256, (90, 2), dtype=np.uint8)
    a, b = rng.integers(0, 4, 11), rng.integers(0, 4, 90)
    names = np.array(["ant", "bee", "cow", "a longer one"])
    reference = mean_average_precision(queries, database, a, b)
    one_hot = np.eye(4, dtype=bool)
    for map_labels in (
        lambda y: names[y],
        lambda y: names[y].astype(object),
        lambda y: names[y].tolist(),
        lambda y: y + 0.5,
        lambda y: y - 2**40,
        lambda y: one_hot[y],
        lambda y: one_hot[y].astype(float),
    ):
        assert mean_average_precision(queries, database, map_labels(a), map_labels(b)) == reference


@pytest.mark.parametrize("n_labels", [2, 21, 64, 130])
def test_items_that_share_any_label_are_relevant(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    queries, database = rng.integers(0, 256, (11, 1), dtype=np.uint8), rng.integers(0, 256, (90, 1), dtype=np.uint8)
    a, b = (rng.random((n, n_labels)) < 1 / n_labels for n in (11, 90))
    expected = [
        ranked_value(in_order(row, relevant), "plain")
        for row, relevant in zip(distances_of(queries, database), (a.astype(int) @ b.T.astype(int)) > 0, strict=True)
    ]
    np.testing.assert_allclose(average_precision(queries, database, a, b, ties="stable"), expected, atol=1e-12)


@pytest.mark.parametrize("ties", TIES)
def test_the_number_of_threads_changes_nothing(ties: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    queries, database = rng.integers(0, 256, (2500, 1), dtype=np.uint8), rng.integers(0, 256, (700, 1), dtype=np.uint8)
    a, b = rng.integers(0, 9, 2500), rng.integers(0, 9, 700)
    results = []
    for n_threads in ("1", "2", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", n_threads)
        results.append(average_precision(queries, database, a, b, ties=ties))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


CODES, LABELS = np.zeros((3, 2), np.uint8), np.array([0, 1, 0])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"query_codes": np.zeros((3, 1), np.uint8)}, ValueError, r"equal width, got shapes \(3, 1\) and \(3, 2\)"),
        ({"query_codes": np.zeros((0, 2), np.uint8)}, ValueError, r"query_codes is empty \(shape \(0, 2\)\)"),
        ({"database_codes": np.zeros((0, 2), np.uint8)}, ValueError, r"database_codes is empty"),
        ({"database_codes": np.zeros((3, 2), np.int8)}, TypeError, r"database_codes must be packed codes"),
        ({"query_codes": np.zeros((3, 5000), np.uint8)}, ValueError, r"query_codes must have at most 4095 bytes"),
        ({"query_labels": [0, 1]}, ValueError, r"query_codes and query_labels have inconsistent .*: 3 and 2"),
        ({"database_labels": [0, 1, 2, 3]}, ValueError, r"database_labels have inconsistent .*: 3 and 4"),
        ({"query_labels": [0, 1, np.nan]}, ValueError, r"query_labels contains NaN"),
        ({"query_labels": ["a", "b", None]}, ValueError, r"query_labels contains missing labels"),
        ({"query_labels": [0, "0", 1]}, ValueError, r"query_labels has text and other labels"),
        ({"query_labels": ["a", "b", "c"]}, TypeError, r"must be of one kind, got dtypes <U1 and int64"),
        ({"query_labels": np.zeros((3, 4))}, ValueError, r"both be 1-D classes or both 2-D 0/1 indicators"),
        (
            {"query_labels": np.zeros((3, 1, 1))},
            ValueError,
            r"query_labels must be labels",
        ),
        ({"ties": "expcted"}, ValueError, r"ties must be one of .* got 'expcted'; did you mean 'expected'\?"),
        ({"average": "trapez"}, ValueError, r"did you mean 'trapezoid'\?"),
        ({"top_k": 0}, ValueError, r"top_k must be an integer from 1 to the 3 item\(s\) that there are to find, got 0"),
        ({"average": "top_k"}, ValueError, r"give top_k"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {"query_codes": CODES, "database_codes": CODES}
    arguments |= {"query_labels": LABELS, "database_labels": LABELS} | change
    with pytest.raises(error, match=message):
        mean_average_precision(**arguments)


def test_bad_indicators_are_refused() -> None:
    with pytest.raises(ValueError, match=r"a two-dimensional database_labels must hold 0/1 indicators"):
        mean_average_precision(CODES, CODES, np.zeros((3, 2)), np.full((3, 2), 2))
    with pytest.raises(ValueError, match=r"same columns.*\(3, 2\) and \(3, 4\)"):
        mean_average_precision(CODES, CODES, np.zeros((3, 2)), np.zeros((3, 4)))
