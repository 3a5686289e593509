"""NOPT: spectral signs, then L-BFGS-B in the box, the better of the two."""

from __future__ import annotations

import pytest

from hashlearn import bqp
from hashlearn.bqp import NonlinearOptimization, Spectral
from tests.bqp.problems import brute_force, operators


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("seed", range(5))
def test_between_the_optimum_and_the_spectral_answer(kind: int, seed: int) -> None:
    A = operators(10, seed)[kind]
    spectral = bqp.solve(A, method="spectral", random_state=seed).value
    plain = bqp.solve(A, method="nopt", random_state=seed)
    slack = 1e-9 * abs(spectral)
    assert brute_force(A) - slack <= plain.value
    assert plain.value <= spectral + slack


def test_the_box_gains_over_the_spectral_signs() -> None:
    gains = []
    for seed in range(5):
        A = operators(60, seed)[0]
        spectral = bqp.solve(A, method=Spectral(), random_state=seed).value
        gains.append(spectral - bqp.solve(A, method="nopt", random_state=seed).value)
    assert min(gains) >= 0.0
    assert max(gains) > 0.0


def test_status_says_when_the_iterations_ran_out() -> None:
    A = operators(60, 0)[0]
    assert bqp.solve(A, method="nopt", max_iter=1, random_state=0).status == "iteration_limit"
    assert bqp.solve(A, method="nopt", max_iter=1000, random_state=0).status == "converged"


@pytest.mark.parametrize("wrong", [{"max_iter": 0}, {"max_iter": 2.5}, {"max_iter": True}])
def test_wrong_parameters_are_named(wrong: dict) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        NonlinearOptimization(**wrong)
