"""Bounds must hold whatever y or d they are given, and be tight at the optimum."""

import math
from statistics import NormalDist

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.bqp import graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn import bqp
from hashlearn.bqp.operators import LowRank, Sparse, as_operator
from hashlearn.bqp.sdr import chebyshev
from hashlearn.bqp.sdr.certificate import dual_bound, factored_bound, low_rank_bound
from hashlearn.bqp.sdr.chebyshev import scaling_weights
from tests.bqp.problems import brute_force


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 9), rank=st.integers(1, 6))
def test_low_rank_bound_holds_for_any_d(seed, n, rank):
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((n, rank)) * 10.0 ** rng.integers(-2, 3)
    if seed % 3 == 0:
        P[:, -1] = P[:, 0]  # a singular Gram matrix
    A = LowRank(P, rng.standard_normal(rank))
    d = np.abs(rng.standard_normal(n)) ** rng.integers(1, 6)
    M = A.toarray()
    assert low_rank_bound(A.rows.proof_gram(d), A.weights).bound <= brute_force(M) + 1e-12 * np.abs(M).sum()


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 9))
def test_factored_bound_holds_for_any_y(seed, n):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, n))
    M += M.T
    y = 3.0 * rng.standard_normal(n)
    A = as_operator(M)
    assert factored_bound(A, y, rng).bound <= brute_force(M) + 1e-12 * np.abs(M).sum()
    assert dual_bound(A, y, rng, proof_limit=0).bound <= brute_force(M) + 1e-12 * np.abs(M).sum()


def test_low_rank_bound_equals_the_eigenvalue_it_stands_for():
    rng = np.random.default_rng(0)
    for rank in (1, 3, 40, 350):
        A = LowRank(rng.standard_normal((500, rank)), rng.standard_normal(rank))
        d = 0.5 + rng.random(500)
        scaled = A.toarray() / np.sqrt(np.outer(d, d))
        smallest = np.linalg.eigvalsh(scaled)[0] if (A.weights < 0).any() else 0.0
        bound = low_rank_bound(A.rows.proof_gram(d), A.weights).bound
        assert bound <= smallest * d.sum() + 1e-12 * np.abs(scaled).sum()
        assert bound == pytest.approx(smallest * d.sum(), rel=1e-9)


def scaled_eigenvalue(A, y):
    """λ_min of D^{-½}(A − Diag(y))D^{-½} and Σd, by LAPACK."""
    d = scaling_weights(A, y)
    S = (A.toarray() - np.diag(y)) / np.sqrt(np.outer(d, d))
    return np.linalg.eigvalsh(S)[0], d.sum()


def test_factored_bound_equals_the_eigenvalue_it_stands_for():
    rng = np.random.default_rng(1)
    for n, accuracy in ((30, 1e-7), (600, 1e-7), (1200, 0.5)):  # dense eigenvalues, and a test that stops when it fails
        half = sp.random_array((n, n), density=0.05, rng=rng)
        A = as_operator(sp.csr_array(half + half.T))
        y = -rng.random(n)
        value, total = scaled_eigenvalue(A, y)
        expected = y.sum() + value * total
        bound = factored_bound(A, y, rng).bound
        assert bound <= expected
        assert bound == pytest.approx(expected, rel=accuracy)


def semidefinite_dual(A, y):
    """y + λ·d with A − Diag(y + λd) ⪰ 0 and singular."""
    return y + scaled_eigenvalue(A, y)[0] * scaling_weights(A, y)


def test_chebyshev_bound_is_below_and_not_far():
    rng = np.random.default_rng(2)
    n = 2000
    half = sp.random_array((n, n), density=0.005, rng=rng)
    A = as_operator(sp.csr_array(half + half.T))
    y = semidefinite_dual(A, -np.ones(n))
    for loss in (1e-2, 1e-4):
        certificate = dual_bound(A, y, rng, enough=y.sum() * (1.0 + loss), proof_limit=100)
        assert certificate.kind == "chebyshev"
        assert y.sum() * (1.0 + 0.7 * loss) <= certificate.bound <= y.sum() * (1.0 - 1e-9)


def test_a_constant_background_costs_no_accuracy():
    rng = np.random.default_rng(6)
    n = 1500
    half = sp.random_array((n, n), density=0.01, rng=rng)
    background = LowRank(np.column_stack([np.ones(n), rng.choice([-1.0, 1.0], (n, 3))]), [50.0, 1.0, 1.0, 1.0])
    A = as_operator(sp.csr_array(-(half + half.T))) + background
    y = semidefinite_dual(A, np.full(n, -10.0))
    certificate = dual_bound(A, y, rng, enough=1.01 * y.sum(), proof_limit=0)
    assert certificate.bound <= y.sum() * (1.0 - 1e-9)
    assert certificate.bound == pytest.approx(y.sum(), rel=0.02)


@pytest.mark.parametrize("exponent", [-100, 0, 100])
@pytest.mark.parametrize("whole", [True, False])
def test_bounds_without_a_factorization_hold(whole, exponent):
    """Small sparse problems: disconnected, isolated nodes, no edges, a diagonal, huge and tiny weights."""
    for seed in range(25):
        rng = np.random.default_rng([seed, whole])
        n = int(rng.integers(2, 12))
        W = np.where(rng.random((n, n)) < rng.choice([0.0, 0.2, 0.6]), rng.standard_normal((n, n)), 0.0)
        W = np.rint(3.0 * W) if whole else W * 10.0 ** rng.uniform(-6, 6, (n, n))
        M = (W + W.T) * 10.0**exponent
        solver = bqp.SemidefiniteRelaxation(proof_limit=0, n_draws=5)
        solution = bqp.solve(sp.csr_array(M), solver, random_state=seed)
        assert solution.bound <= brute_force(M) + 1e-12 * np.abs(M).sum()
        assert np.isfinite(solution.bound)


@pytest.mark.parametrize("seed", range(6))
def test_planted_problems_whose_dual_is_degenerate(seed):
    """Weights −w s_i s_j over twelve decades: the optimum is known, and S is singular at the best dual."""
    rng = np.random.default_rng(seed)
    n = 300
    s = rng.choice([-1.0, 1.0], n)
    i, j = rng.integers(0, n, (2, 4 * n))
    w = 10.0 ** rng.uniform(-6, 6, 4 * n) * (i < j)
    half = sp.csr_array((-w * s[i] * s[j], (i, j)), shape=(n, n))
    A = sp.csr_array(half + half.T)
    best = -math.fsum(np.abs(A.data))
    solution = bqp.solve(A, bqp.SemidefiniteRelaxation(proof_limit=0, tol=1e-4), random_state=seed)
    assert solution.bound <= best * (1.0 - 1e-15)
    assert solution.bound >= best * (1.0 + 1e-3)


def test_direction_is_one_of_descent():
    """At d = 1 the direction is Pᵀu for the eigenvector u of the smallest eigenvalue."""
    rng = np.random.default_rng(3)
    A = LowRank(rng.standard_normal((300, 5)), [-1.0, -2.0, 1.0, -3.0, 2.0])
    u = np.linalg.eigh(A.toarray())[1][:, 0]
    direction = low_rank_bound(A.rows.proof_gram(np.ones(300)), A.weights).direction
    cosine = direction @ (A.P.T @ u) / np.linalg.norm(direction) / np.linalg.norm(A.P.T @ u)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-9)


def test_positive_semidefinite_low_rank_is_bounded_by_zero():
    A = LowRank(np.random.default_rng(4).standard_normal((400, 3)), [1.0, 2.0, 3.0])
    assert dual_bound(A, np.zeros(400), np.random.default_rng(0)).bound == 0.0


def test_a_bound_that_is_enough_is_verified_or_replaced():
    rng = np.random.default_rng(5)
    A = LowRank(rng.standard_normal((40, 6)), [1.0, 2.0, -1.0, -3.0, -0.5, -2.0])
    d = rng.uniform(0.5, 2.0, 40)
    proof, w = A.rows.proof_gram(d), A.weights
    tightest = low_rank_bound(proof, w).bound
    assert low_rank_bound(proof, w, enough=1.01 * tightest).bound == pytest.approx(1.01 * tightest, rel=1e-12)
    assert low_rank_bound(proof, w, enough=0.99 * tightest).bound == tightest


@pytest.mark.parametrize("factor", [0.5, 0.9])
def test_too_low_an_end_of_the_spectrum_costs_a_restart_and_no_bound(monkeypatch, factor):
    """The largest eigenvalue of a random regular graph lies apart, and few Lanczos steps may miss it."""
    A = Sparse(graphs.regular_graph(3000, 0))
    y = np.full(A.n, -2.0 * np.sqrt(2.0) - 0.05)
    estimate = chebyshev._top
    right = chebyshev.chebyshev_test(A, y, np.random.default_rng(0), 1.0)
    monkeypatch.setattr(chebyshev, "_top", lambda *arguments: factor * estimate(*arguments))
    restarted = chebyshev.chebyshev_test(A, y, np.random.default_rng(0), 1.0)
    assert right.bound > y.sum() - 2.0
    assert restarted.bound > y.sum() - 2.0


def test_restarts_of_a_test_count_in_its_probability():
    """Every restart draws new vectors, and eight relaxations make all their tests."""
    assert 8 * chebyshev.MOST_TESTS * chebyshev.MOST_RESTARTS * chebyshev.FAILURE_PROBABILITY <= 1e-9
    t = chebyshev.COMPONENT
    assert (2.0 * NormalDist().cdf(t) - 1.0) ** chebyshev.COLUMNS == pytest.approx(chebyshev.FAILURE_PROBABILITY)


def test_the_kernel_of_a_test_lets_nan_show():
    """A bound rests on its norms: flags that assume finite numbers would let a compiler hide NaN."""
    assert not set(chebyshev._sparse_step.targetoptions["fastmath"]) & {"fast", "nnan", "ninf"}
