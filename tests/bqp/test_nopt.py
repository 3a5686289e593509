"""NOPT: spectral signs, then L-BFGS-B in the box, the better of the two."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import bqp
from hashlearn.bqp import LowRank, NonlinearOptimization, Operator, Spectral, as_operator
from hashlearn.bqp.solution import Run
from hashlearn.core.threads import one_blas_thread


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As inside `solve`: two pools of threads would fight over the cores."""
    with one_blas_thread():
        yield


def operators(n: int, seed: int) -> list[Operator]:
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((n, n))
    S = np.triu(np.where(rng.random((n, n)) < 0.4, rng.standard_normal((n, n)), 0.0), 1)
    sparse = as_operator(sp.csr_array(S + S.T))
    low_rank = LowRank(rng.standard_normal((n, 3)), rng.standard_normal(3))
    return [as_operator(M + M.T), sparse, low_rank, sparse + low_rank]


def brute_force(A: Operator) -> float:
    X = np.array(list(itertools.product([-1.0, 1.0], repeat=A.n)))
    return float(np.einsum("ij,ij->i", X @ A.toarray(), X).min())


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("seed", range(5))
def test_between_the_optimum_and_the_spectral_answer(kind: int, seed: int) -> None:
    A = operators(10, seed)[kind]
    spectral = bqp.solve(A, method="spectral", random_state=seed).value
    plain = bqp.solve(A, method="nopt", random_state=seed)
    polished = bqp.solve(A, method=NonlinearOptimization(polish=True), random_state=seed)
    slack = 1e-9 * abs(spectral)
    assert brute_force(A) - slack <= polished.value <= plain.value + slack
    assert plain.value <= spectral + slack


def test_the_box_gains_over_the_spectral_signs() -> None:
    gains = []
    for seed in range(5):
        A = operators(60, seed)[0]
        spectral = bqp.solve(A, method=Spectral(), random_state=seed).value
        gains.append(spectral - bqp.solve(A, method="nopt", random_state=seed).value)
    assert min(gains) >= 0.0
    assert max(gains) > 0.0


@pytest.mark.parametrize("seed", range(3))
def test_polish_leaves_no_single_flip(seed: int) -> None:
    A = operators(40, seed)[1]
    solution = bqp.solve(A, method=NonlinearOptimization(polish=True), random_state=seed)
    assert A.flip_gains(solution.x).min() >= -1e-9


@pytest.mark.parametrize("scale", [1e-100, 1e100])
@pytest.mark.parametrize("seed", range(3))
def test_scale_of_the_matrix_does_not_matter(scale: float, seed: int) -> None:
    A = operators(60, seed)[0]
    spectral = bqp.solve(A, method="spectral", random_state=0).value
    plain = bqp.solve(A, method="nopt", random_state=0).value
    assert plain < spectral
    scaled = bqp.solve(A.scaled(scale), method="nopt", random_state=0).value / scale
    assert scaled == pytest.approx(plain, rel=0.02)
    assert scaled < spectral


@pytest.mark.parametrize(
    "A",
    [
        np.zeros((4, 4)),
        np.eye(3),
        -np.eye(3),
        np.array([[2.0]]),
        np.ones((2, 2)),
        np.kron(np.eye(2), np.ones((3, 3))),
    ],
)
@pytest.mark.parametrize("polish", [False, True])
def test_degenerate_matrices(A: np.ndarray, polish: bool) -> None:
    solution = bqp.solve(A, method=NonlinearOptimization(polish=polish), random_state=0)
    assert solution.value == pytest.approx(solution.x @ A @ solution.x)
    assert set(np.unique(solution.x)) <= {-1, 1}
    if polish:
        assert solution.value == pytest.approx(brute_force(as_operator(A)))


def test_never_worse_than_a_given_start() -> None:
    unaided = []
    for seed in range(6):
        A = operators(10, seed)[0]
        X = np.array(list(itertools.product([-1.0, 1.0], repeat=10)))
        best = X[np.argmin([A.value(x) for x in X])]
        run = Run(A)
        NonlinearOptimization().run(A, run, np.random.default_rng(0), best)
        assert run.value == pytest.approx(brute_force(A))
        unaided.append(bqp.solve(A, method="nopt", random_state=0).value > brute_force(A) + 1e-9)
    assert any(unaided)  # so that the start made the difference


def test_status_says_when_the_iterations_ran_out() -> None:
    A = operators(60, 0)[0]
    assert bqp.solve(A, method="nopt", max_iter=1, random_state=0).status == "iteration_limit"
    assert bqp.solve(A, method="nopt", max_iter=1000, random_state=0).status == "converged"


def test_same_seed_same_answer_and_input_untouched() -> None:
    A = np.array(operators(40, 5)[0].toarray())
    before = A.copy()
    first, second = (bqp.solve(A, method="nopt", random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(A, before)


@pytest.mark.parametrize("wrong", [{"max_iter": 0}, {"max_iter": 2.5}, {"max_iter": True}, {"polish": 1}])
def test_wrong_parameters_are_named(wrong: dict) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        NonlinearOptimization(**wrong)
