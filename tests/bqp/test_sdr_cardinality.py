"""Under a cardinality every point keeps the sum, and the bound is one for the constrained problem."""

import contextlib
import itertools

import numpy as np
import pytest

from hashlearn import bqp
from hashlearn.bqp.constraints import Cardinality
from hashlearn.bqp.solution import OutOfTime, Run
from tests.bqp.test_sdr import KINDS, random_problem


def constrained_optimum(A: bqp.Operator, cardinality: Cardinality) -> float:
    X = np.array(list(itertools.product((1.0, -1.0), repeat=A.n)))
    sums = X.sum(axis=1)
    if cardinality.anchor is not None:
        X, sums = X[X[:, cardinality.anchor] > 0], sums[X[:, cardinality.anchor] > 0] - 1.0
    X = X[sums == cardinality.total]
    return float(np.einsum("ij,ij->i", X @ A.toarray(), X).min())


def solved(A: bqp.Operator, cardinality: Cardinality, seed: int, time_limit: float | None = None) -> Run:
    run = Run(A, "sdr", time_limit)
    run.cardinality = cardinality
    with contextlib.suppress(OutOfTime):
        bqp.SemidefiniteRelaxation(n_draws=5).run(A, run, np.random.default_rng(seed), None)
    return run


def keeps(x: np.ndarray, cardinality: Cardinality) -> bool:
    rest = 0 if cardinality.anchor is None else 1
    return x.sum() - rest == cardinality.total and (cardinality.anchor is None or x[cardinality.anchor] == 1)


@pytest.mark.parametrize("kind", KINDS)
def test_bound_optimum_value_in_order(kind):
    for seed in range(12):
        rng = np.random.default_rng([seed, KINDS.index(kind), 3])
        n = int(rng.integers(3, 10))
        A = random_problem(kind, rng, n).scaled(10.0 ** rng.integers(-3, 4))
        anchor = int(rng.integers(n)) if seed % 2 else None
        free = n - (anchor is not None)
        cardinality = Cardinality(int(2 * rng.integers(0, free + 1) - free), anchor)
        best = constrained_optimum(A, cardinality)
        run = solved(A, cardinality, seed)
        slack = 1e-12 * np.abs(A.toarray()).sum()
        assert keeps(run.x, cardinality)
        assert run.bound <= best + slack
        assert best <= run.value + slack


def test_the_bound_of_a_bisection_is_tighter_than_without_the_sum():
    """Two cliques of 20: the best unconstrained signs are all equal; under Σx = 0 they are one clique each."""
    clique = np.ones((20, 20)) - np.eye(20)
    A = bqp.as_operator(-np.block([[clique, np.zeros((20, 20))], [np.zeros((20, 20)), clique]]) - 0.01)
    run = solved(A, Cardinality(0), 0)
    assert run.value == pytest.approx(-2 * 20 * 19)
    assert run.bound == pytest.approx(run.value, rel=1e-3)
    lopsided = solved(A, Cardinality(20), 0)
    # A mixture of both has (eᵀx)² = 400 on average, and the value −760 − 0.01 · 400.
    assert lopsided.bound == pytest.approx(-764.0, rel=1e-3)
    assert lopsided.bound <= lopsided.value
    assert keeps(lopsided.x, Cardinality(20))


def test_a_short_time_still_gives_a_point_that_keeps_the_sum():
    rng = np.random.default_rng(0)
    A = random_problem("sparse", rng, 300)
    run = solved(A, Cardinality(10), 0, time_limit=1e-3)
    assert keeps(run.x, Cardinality(10))
    assert np.isfinite(run.bound)
