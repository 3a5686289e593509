"""`Problem`: exact translation between the owner's objective and xᵀAx, in all senses."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashlearn import bqp

INTEGERS = st.integers(-50, 50).map(float)
QUARTERS = st.integers(-50, 50).map(lambda k: k / 4.0)
ANY = st.floats(-1e6, 1e6).filter(lambda w: w == 0.0 or abs(w) > 1e-6)


@st.composite
def problems(draw: Any) -> bqp.Problem:
    sense = draw(st.sampled_from(["max-cut", "qubo", "ising"]))
    n = draw(st.integers(1, 5))
    index = st.integers(0, n - 1)
    weights = draw(st.sampled_from([INTEGERS, QUARTERS, ANY]))
    terms = draw(st.lists(st.tuples(index, index, weights), max_size=8))
    i, j = (np.array([t[k] for t in terms], dtype=np.int64) for k in (0, 1))
    w = np.array([t[2] for t in terms], dtype=np.float64)
    offset = 0.0 if sense == "max-cut" else draw(weights)
    maximize = sense == "max-cut" or draw(st.booleans())
    return bqp.Problem(sense, n, i, j, w, offset, maximize)


def exact(problem: bqp.Problem, own: tuple[int, ...]) -> Fraction:
    total = Fraction(problem.offset)
    for i, j, w in zip(problem.i.tolist(), problem.j.tolist(), problem.w.tolist(), strict=True):
        factor = int(own[i] != own[j]) if problem.sense == "max-cut" else own[i] if i == j else own[i] * own[j]
        total += Fraction(w) * factor
    return total


@given(problems())
def test_value_of_the_operator_is_the_objective(problem: bqp.Problem) -> None:
    size = sum(abs(Fraction(w)) for w in problem.w) + abs(Fraction(problem.offset)) + 1
    for x in itertools.product((-1.0, 1.0), repeat=problem.operator.n):
        own = problem.assignment(x)
        found, wanted = problem.objective(problem.operator.value(x)), exact(problem, tuple(own.tolist()))
        if not problem.rounding:
            assert found == float(wanted) == float(problem.evaluate(own))
        assert abs(Fraction(found) - wanted) <= size / 10**12
        assert abs(problem.evaluate(own) - wanted) <= size / 10**15


@given(problems(), st.floats(0.0, 3.0))
def test_bound_is_never_on_the_wrong_side(problem: bqp.Problem, below: float) -> None:
    n = problem.operator.n
    lowest = min(problem.operator.value(x) for x in itertools.product((-1.0, 1.0), repeat=n))
    own = [exact(problem, tuple(problem.assignment(x).tolist())) for x in itertools.product((-1.0, 1.0), repeat=n)]
    bound = problem.objective_bound(lowest - below)
    if problem.maximize:
        assert bound >= max(own)
    else:
        assert bound <= min(own)
    if not problem.rounding:
        assert problem.exact_bound(lowest) == (max(own) if problem.maximize else min(own))


def test_few_and_many_entries_become_sparse_and_dense() -> None:
    ring = bqp.max_cut_problem([(k, (k + 1) % 40) for k in range(40)])
    complete = bqp.max_cut_problem(np.ones((40, 40)))
    assert ring.operator.is_sparse
    assert complete.operator.is_dense
    assert ring.anchor is None


def test_weights_far_apart_lose_only_what_the_rounding_says() -> None:
    problem = bqp.max_cut_problem([(0, 1, 1e300), (1, 2, 1e-300)])
    assert 0.0 < problem.rounding < 1e287
    assert problem.operator.toarray().max() <= 1.0


@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_answers_are_pickled_with_their_problem(weight: float) -> None:
    answer = bqp.qubo({("a", "b"): weight, ("b", "b"): -3.0 * weight}, method="exact")
    again = pickle.loads(pickle.dumps(answer))
    assert (again.energy, again.problem.operator.n) == (answer.energy, answer.problem.operator.n)
