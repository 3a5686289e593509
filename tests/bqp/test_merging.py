"""Merging identical rows: a smaller problem with the same values and the same optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn.bqp import Dense, LowRank, Structured, as_operator, presolve
from hashlearn.bqp.presolve import Step, merge
from tests.bqp.problems import brute_force, random_low_rank, random_sparse, repeated_rows


def a_few_rows(n: int, distinct: int, rank: int, seed: int) -> Structured:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((distinct, rank))
    return LowRank(rows[rng.integers(0, distinct, n)], rng.standard_normal(rank))


def groups_of(step: Step) -> np.ndarray:
    """The variable of the smaller problem that each variable became."""
    return step.expand(np.arange(step.problem.n))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 11), distinct=st.integers(1, 6), rank=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_same_values_and_same_optimum(n, distinct, rank, seed):
    A = a_few_rows(n, distinct, rank, seed)
    merged = merge(A) or Step(A, np.copy, np.copy)
    m = merged.problem.n
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    assert merged.expand(x).shape == (n,)
    assert A.value(merged.expand(x)) == pytest.approx(merged.problem.value(x), rel=1e-10, abs=1e-10)
    assert brute_force(merged.problem) == pytest.approx(brute_force(A), rel=1e-10, abs=1e-10)
    np.testing.assert_array_equal(merged.collapse(merged.expand(x)), x)


def test_only_rows_with_equal_entries_share_a_variable():
    A = a_few_rows(500, 7, 3, 0)
    A = LowRank(A.P, -np.abs(A.weights))
    merged = merge(A)
    assert merged.problem.n == len(np.unique(A.P, axis=0))
    groups = groups_of(merged)
    for group in range(merged.problem.n):
        rows = A.P[groups == group]
        assert (rows == rows[0]).all()
        np.testing.assert_allclose(merged.problem.P[group], len(rows) * rows[0], rtol=1e-13)


def test_repelling_rows_are_left_alone():
    merged = merge(LowRank([[1.0, 0.0], [0.0, 1.0]] * 3, [1.0, -1.0]))
    assert merged.problem.n == 4  # three copies of the first row, one variable for the second
    assert len(np.unique(groups_of(merged)[::2])) == 3
    assert len(np.unique(groups_of(merged)[1::2])) == 1


def test_minus_zero_equals_zero():
    assert merge(LowRank([[0.0, 1.0], [-0.0, 1.0], [1.0, 1.0]], [-1.0, -1.0])).problem.n == 2


def test_a_hash_collision_merges_nothing_wrong(monkeypatch):
    monkeypatch.setattr(presolve, "_hash_rows", lambda P: np.zeros(len(P), np.uint64))
    A = repeated_rows(3, weights=(-1.0, -1.0, -2.0))
    merged = merge(A)
    assert brute_force(merged.problem) == pytest.approx(brute_force(A))
    groups = groups_of(merged)
    for group in range(merged.problem.n):
        rows = A.P[groups == group]
        assert (rows == rows[0]).all()


@pytest.mark.parametrize(
    "A",
    [
        Dense(np.ones((4, 4))),
        as_operator(random_sparse(6, 0)),
        as_operator(random_sparse(6, 0)) + LowRank(np.ones((6, 1)), [-1.0]),
        random_low_rank(30, 2, 0),
        LowRank(np.zeros((5, 1)), [1.0]),
    ],
    ids=["dense", "sparse", "sparse plus low rank", "all distinct", "rank zero"],
)
def test_there_is_nothing_to_merge_in_others(A):
    assert merge(A) is None


def test_wide_rows_are_merged_too():
    """Of a wide P the last columns are looked at first: rows may repeat there and differ elsewhere."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 100))
    merged = merge(LowRank(rows[np.arange(30) % 3], -np.ones(100)))
    np.testing.assert_array_equal(groups_of(merged), np.arange(30) % 3)
    rows[:, -40:] = rows[0, -40:]
    merged = merge(LowRank(rows[np.arange(30) % 3], -np.ones(100)))
    np.testing.assert_array_equal(groups_of(merged), np.arange(30) % 3)


def test_too_few_repeats_are_not_worth_a_copy():
    P = np.random.default_rng(0).standard_normal((1100, 2))
    P[1] = P[0]
    assert merge(LowRank(P, [-1.0, -1.0])) is None
    assert merge(LowRank(P[:100], [-1.0, -1.0])).problem.n == 99


def test_collapse_takes_the_majority_and_plus_for_a_tie():
    merged = merge(LowRank([[1.0], [1.0], [1.0], [2.0], [2.0]], [-1.0]))
    np.testing.assert_array_equal(merged.collapse(np.array([-1.0, -1.0, 1.0, 1.0, -1.0])), [-1.0, 1.0])
