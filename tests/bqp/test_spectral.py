"""Spectral relaxation, eq. (19), and its two binarizations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp import LowRank, Operator, Spectral, as_operator
from hashlearn.bqp.methods.spectral import sign, spectral_relaxation
from hashlearn.bqp.state import SolveState
from tests.bqp.problems import random_symmetric


def four_kinds(n: int, seed: int) -> list[Operator]:
    """Dense, sparse and connected (no zero in the eigenvector), low rank, and the sum of the last two."""
    rng = np.random.default_rng(seed)
    M = np.triu(np.where(rng.random((n, n)) < 0.4, rng.standard_normal((n, n)), 0.0), 1)
    M += np.diag(np.full(n - 1, 2.0), 1)
    sparse = as_operator(sp.csr_array(M + M.T))
    low_rank = LowRank(rng.standard_normal((n, 3)), rng.standard_normal(3))
    return [as_operator(random_symmetric(n, seed)), sparse, low_rank, sparse + low_rank]


def by_hand_sequential(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Eq. (20): for each i in turn, try both signs and keep the better."""
    x = x.copy()
    for i in range(len(x)):
        trials = []
        for s in (-1.0, 1.0):
            x[i] = s
            trials.append((x @ A @ x, s))
        x[i] = min(trials)[1]
    return x


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("n", [2, 3, 9, 70])
def test_signs_of_the_eigenvector(kind: int, n: int) -> None:
    A = four_kinds(n, seed=n)[kind]
    _, vectors = np.linalg.eigh(A.toarray())
    x = sign(vectors[:, 0])
    expected = min(A.value(x), A.value(np.ones(n)))  # a run starts from all ones
    solution = bqp.solve(A, method=Spectral(), random_state=0)
    assert solution.value == pytest.approx(expected, abs=1e-9)
    assert set(np.unique(solution.x)) <= {-1, 1}
    assert solution.status == "converged"


@pytest.mark.parametrize("kind", range(4))
def test_sequential_is_equation_20_by_hand(kind: int) -> None:
    A = four_kinds(25, seed=3)[kind]
    state = SolveState(A)
    Spectral("sequential").solve(A, state, np.random.default_rng(1), None)
    _, relaxed = spectral_relaxation(A, SolveState(A), np.random.default_rng(1))
    x = by_hand_sequential(A.toarray(), relaxed)
    assert A.value(x) < A.value(np.ones(25))
    np.testing.assert_array_equal(state.x, x)


def test_relaxation_is_a_lower_bound_and_has_length_root_n() -> None:
    A = as_operator(random_symmetric(10, 4))
    smallest, x = spectral_relaxation(A, SolveState(A), np.random.default_rng(0))
    assert x @ x == pytest.approx(10.0)
    assert A.value(x) == pytest.approx(10.0 * smallest)
    optimum = min(A.value(np.array(s)) for s in itertools.product([-1.0, 1.0], repeat=10))
    assert 10.0 * smallest <= optimum


@pytest.mark.parametrize("binarization", ["sign", "sequential"])
def test_planted_signs_are_found(binarization: str) -> None:
    planted = np.where(np.random.default_rng(0).random(200) < 0.5, -1.0, 1.0)
    A = LowRank(planted[:, None], [-1.0])
    solution = bqp.solve(A, method=Spectral(binarization), random_state=0)  # type: ignore[arg-type]
    assert solution.value == -(200.0**2)
    assert abs(planted @ solution.x) == 200.0


def test_unknown_binarization_is_refused() -> None:
    with pytest.raises(ValueError, match=r"binarization must be one of sign, sequential, got 'round'"):
        Spectral("round")  # type: ignore[arg-type]
