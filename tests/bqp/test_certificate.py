"""Bounds must hold whatever y or d they are given, and be tight at the optimum."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from hashlearn.bqp.operators import LowRank, as_operator
from hashlearn.bqp.sdr.certificate import dual_bound, low_rank_bound, shifted_bound


def optimum(M: np.ndarray) -> float:
    X = np.array(list(itertools.product((1.0, -1.0), repeat=len(M))))
    return float(np.einsum("ij,ij->i", X @ M, X).min())


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
    assert low_rank_bound(A, d).bound <= optimum(M) + 1e-12 * np.abs(M).sum()


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 9))
def test_shifted_bound_holds_for_any_y(seed, n):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, n))
    M += M.T
    y = 3.0 * rng.standard_normal(n)
    A = as_operator(M)
    assert shifted_bound(A, y, rng).bound <= optimum(M) + 1e-12 * np.abs(M).sum()
    assert dual_bound(A, y, rng, proof_limit=0).bound <= optimum(M) + 1e-12 * np.abs(M).sum()


def test_low_rank_bound_equals_the_eigenvalue_it_stands_for():
    rng = np.random.default_rng(0)
    for rank in (1, 3, 40, 350):
        A = LowRank(rng.standard_normal((500, rank)), rng.standard_normal(rank))
        d = 0.5 + rng.random(500)
        scaled = A.toarray() / np.sqrt(np.outer(d, d))
        smallest = np.linalg.eigvalsh(scaled)[0] if (A.weights < 0).any() else 0.0
        bound = low_rank_bound(A, d).bound
        assert bound <= smallest * d.sum() + 1e-12 * np.abs(scaled).sum()
        assert bound == pytest.approx(smallest * d.sum(), rel=1e-9)


def test_shifted_bound_equals_the_eigenvalue_it_stands_for():
    rng = np.random.default_rng(1)
    for n in (30, 600):  # a dense eigenvalue, and one from Lanczos
        half = sp.random_array((n, n), density=0.05, rng=rng)
        A = as_operator(sp.csr_array(half + half.T))
        y = -rng.random(n)
        expected = y.sum() + n * np.linalg.eigvalsh(A.toarray() - np.diag(y))[0]
        bound = shifted_bound(A, y, rng).bound
        assert bound <= expected
        assert bound == pytest.approx(expected, rel=1e-7)


def test_lanczos_bound_is_below_and_not_far():
    rng = np.random.default_rng(2)
    n = 2000
    half = sp.random_array((n, n), density=0.005, rng=rng)
    A = as_operator(sp.csr_array(half + half.T))
    y = -np.ones(n)
    expected = y.sum() + n * np.linalg.eigvalsh(A.toarray() - np.diag(y))[0]
    certificate = dual_bound(A, y, rng, proof_limit=100)
    assert certificate.kind == "lanczos"
    assert certificate.bound <= expected
    assert certificate.bound == pytest.approx(expected, rel=0.02)


def test_a_constant_background_costs_lanczos_no_accuracy():
    rng = np.random.default_rng(6)
    n = 1500
    half = sp.random_array((n, n), density=0.01, rng=rng)
    background = LowRank(np.column_stack([np.ones(n), rng.choice([-1.0, 1.0], (n, 3))]), [50.0, 1.0, 1.0, 1.0])
    A = as_operator(sp.csr_array(-(half + half.T))) + background
    y = np.full(n, -10.0)
    exact = y.sum() + n * np.linalg.eigvalsh(A.toarray() - np.diag(y))[0]
    certificate = dual_bound(A, y, rng, proof_limit=0)
    assert certificate.bound <= exact
    assert certificate.bound == pytest.approx(exact, abs=0.01 * abs(y.sum()))


def test_direction_is_one_of_descent():
    """At d = 1 the direction is Pᵀu for the eigenvector u of the smallest eigenvalue."""
    rng = np.random.default_rng(3)
    A = LowRank(rng.standard_normal((300, 5)), [-1.0, -2.0, 1.0, -3.0, 2.0])
    u = np.linalg.eigh(A.toarray())[1][:, 0]
    direction = low_rank_bound(A, np.ones(300)).direction
    cosine = direction @ (A.P.T @ u) / np.linalg.norm(direction) / np.linalg.norm(A.P.T @ u)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-9)


def test_positive_semidefinite_low_rank_is_bounded_by_zero():
    A = LowRank(np.random.default_rng(4).standard_normal((400, 3)), [1.0, 2.0, 3.0])
    assert dual_bound(A, np.zeros(400), np.random.default_rng(0)).bound == 0.0


def test_a_bound_that_is_enough_is_verified_or_replaced():
    rng = np.random.default_rng(5)
    A = LowRank(rng.standard_normal((40, 6)), [1.0, 2.0, -1.0, -3.0, -0.5, -2.0])
    d = rng.uniform(0.5, 2.0, 40)
    tightest = low_rank_bound(A, d).bound
    assert low_rank_bound(A, d, enough=1.01 * tightest).bound == pytest.approx(1.01 * tightest, rel=1e-12)
    assert low_rank_bound(A, d, enough=0.99 * tightest).bound == tightest
