"""Bound ≤ optimum ≤ value on 500 random problems with n ≤ 16, and Theorem 1 through the closed form (13)."""

import numpy as np
import pytest

from hashlearn import bqp
from hashlearn.bqp.eigen import shift_to_negative_semidefinite
from tests.bqp.problems import brute_force
from tests.bqp.test_sdr import KINDS, random_problem


@pytest.mark.parametrize("kind", KINDS)
def test_bound_optimum_value_and_theorem_1(kind):
    for seed in range(100):
        rng = np.random.default_rng([seed, KINDS.index(kind), 7])
        A = random_problem(kind, rng, int(rng.integers(2, 17)))
        best = brute_force(A)
        slack = 1e-12 * np.abs(A.toarray()).sum() + 1e-300
        for method in ("sdr", "exact", "local_search"):
            solution = bqp.solve(A, method, random_state=seed)
            assert solution.bound <= best + slack, (method, seed)
            assert best <= solution.value + slack, (method, seed)
            if method == "sdr" and "expected_value" in solution.details:
                _check_theorem_1(A, solution, best, slack)


def _check_theorem_1(A, solution, best, slack):
    expected, relaxed = solution.details["expected_value"], solution.details["relaxation_value"]
    _, top = shift_to_negative_semidefinite(A)
    # For B = A − λ₁ I, everything is lower by n λ₁.
    shift, ratio = A.n * top, 2.0 / np.pi
    loose = slack + 1e-5 * (abs(best) + abs(shift))
    assert best - shift - loose <= expected - shift <= ratio * (best - shift) + loose
    assert expected - shift <= ratio * (relaxed - shift) + loose
