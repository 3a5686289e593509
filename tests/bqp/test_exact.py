"""Exact enumeration: the optimum of everything small, proven, and a clear refusal of the rest."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import hashlearn.bqp.methods.exact as exact
from hashlearn import bqp
from hashlearn.bqp import Exact, LowRank, Status, Structured, as_operator
from tests.bqp.problems import PROBLEMS, all_signs, brute_force, random_low_rank, random_symmetric, repeated_rows

ENUMERABLE = [
    p
    for p in PROBLEMS
    if p.make().n <= exact.LIMIT or p.name.startswith(("supervised", "zero low", "planted rank one, low"))
]


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.make().n <= 15], ids=lambda p: p.name)
def test_table_agrees_with_brute_force(problem):
    assert problem.optimum == pytest.approx(brute_force(problem.make()), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("problem", ENUMERABLE, ids=lambda p: p.name)
def test_finds_and_proves_the_optimum(problem):
    A = problem.make()
    solution = bqp.solve(A, "exact")
    assert solution.value == pytest.approx(problem.optimum, rel=1e-12, abs=1e-12)
    assert solution.bound <= problem.optimum + 1e-12 * abs(problem.optimum)
    assert solution.status is Status.OPTIMAL
    assert solution.gap <= 1e-9
    assert A.value(solution.x) == solution.value


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 11), seed=st.integers(0, 2**32 - 1), integers=st.booleans())
def test_any_small_matrix(n, seed, integers):
    A = random_symmetric(n, seed, integers)
    x, bound = exact.enumerate_signs(as_operator(A))
    best = brute_force(A)
    assert x @ A @ x == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert best - 1e-13 * np.abs(A).sum() <= bound
    assert bound <= exact.enumerate_signs(as_operator(A), exact=as_operator(A).exact_form())[1]
    assert x[0] == 1.0


@pytest.mark.parametrize("n", [1, 2, 5, 9, 10])
@pytest.mark.parametrize("steps", [1, 8, 15, 64])
def test_pieces_cover_everything_once(monkeypatch, n, steps):
    monkeypatch.setattr(exact, "STEPS_PER_PIECE", steps)
    A = random_symmetric(n, 3)
    fractions = []
    x, _ = exact.enumerate_signs(as_operator(A), fractions.append)
    assert x @ A @ x == pytest.approx(brute_force(A))
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert len(fractions) == -(-(2 ** (n - 1)) // steps)


def test_every_point_can_win():
    """A planted optimum at each of the 2^(n−1) points is found: no Gray code is skipped."""
    for s in all_signs(6):
        x, bound = exact.enumerate_signs(as_operator(-np.outer(s, s)))
        np.testing.assert_array_equal(x, s)
        assert bound == -36.0


def test_bound_is_exact_for_integers_and_a_hair_lower_otherwise():
    integers = bqp.solve(random_symmetric(12, 0, integers=True), "exact")
    assert integers.bound == integers.value
    A = random_low_rank(12, 3, 0)
    floats = bqp.solve(A, "exact")
    assert floats.value - 1e-11 * A.magnitudes().sum() <= floats.bound < floats.value


def test_an_array_is_enumerated_without_rounding():
    """Values that differ in the last digits of sums that float64 rounds, and entries of any range."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = int(rng.integers(1, 8))
        A = rng.choice([0.0, 0.1, 0.3, -0.7, 1e15, -1e9, 1e-200, 1e100], size=(n, n))
        A = np.tril(A) + np.tril(A, -1).T
        whole = [[Fraction(a) for a in row] for row in A]
        values = [sum(whole[i][j] * int(s[i] * s[j]) for i in range(n) for j in range(n)) for s in all_signs(n)]
        form = as_operator(A).exact_form()
        x, bound = exact.enumerate_signs(as_operator(A), exact=form)
        assert bound == min(values) == form.value(x)
        solution = bqp.solve(A, "exact")
        assert solution.status is Status.OPTIMAL
        assert solution.exact_bound in (bound, None)  # None: integers that float64 adds without rounding
        assert Fraction(solution.bound) <= bound


def test_rounding_does_not_pick_the_wrong_point():
    """A huge constant (a diagonal) would swamp the sums along the way."""
    small = random_symmetric(14, 5)
    A = small + 1e7 * np.eye(14)
    x, bound = exact.enumerate_signs(as_operator(A))
    assert x @ small @ x == pytest.approx(brute_force(small), rel=1e-9)
    assert x @ A @ x * (1.0 - 1e-13) <= bound <= x @ A @ x


@pytest.mark.parametrize("copies", [1, 4, 20_000])
def test_repeated_rows_are_one_variable(copies):
    A = repeated_rows(copies, weights=(-1.0, -0.5, -2.0))
    rows, counts = np.unique(A.P, axis=0, return_counts=True)
    merged = rows * counts[:, None]
    solution = bqp.solve(A, "exact")
    assert solution.value == pytest.approx(brute_force((merged * A.weights) @ merged.T), rel=1e-10)
    assert solution.x.shape == (5 * copies,)


def test_repeated_rows_with_positive_diagonal_stay_apart():
    """Two equal rows that repel: the optimum gives them opposite signs, which merging them would forbid."""
    solution = bqp.solve(LowRank([[1.0], [1.0]], [1.0]), "exact")
    assert solution.value == 0.0
    assert sorted(solution.x) == [-1, 1]


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (np.ones((25, 25)), ["n = 25", "24", '"sdr"', '"local_search"']),
        (sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(10**6, 10**6)), ["n = 1000000", "24"]),
        (random_low_rank(40, 2, 0), ["n = 40", "40 distinct rows", "24"]),
    ],
)
def test_refuses_what_is_too_large(monkeypatch, A, words):
    monkeypatch.setattr(exact, "enumerate_signs", None)  # any work would fail
    monkeypatch.setattr(Structured, "toarray", None)
    with pytest.raises(ValueError, match='method "exact"') as refusal:
        bqp.solve(A, Exact())
    for word in words:
        assert word in str(refusal.value)


def test_ticks_and_time_limit(monkeypatch):
    monkeypatch.setattr("hashlearn.bqp.state.SECONDS_BETWEEN_REPORTS", 0.0)
    monkeypatch.setattr(exact, "STEPS_PER_PIECE", 64)
    for A in (random_symmetric(16, 0), random_symmetric(16, 0, integers=True)):
        stages = []
        bqp.solve(A, "exact", progress=lambda p, stages=stages: stages.append((p.stage, p.fraction)))
        assert stages[-1] == ("enumeration", 1.0)
        assert len(stages) == 2**15 // 64 + 1  # and one at the end
    late = bqp.solve(A, "exact", time_limit=1e-9)
    assert late.status is Status.TIME_LIMIT
    assert late.bound == -np.inf
