"""Leave-one-out errors of kernel ridge regression: the formula against leaving out, and the choice they make."""

import numpy as np
import pytest

from hashlearn.hash_functions import KernelRidge
from hashlearn.hash_functions.kernel_methods import ALPHAS, alpha_by_leave_one_out, leave_one_out_errors
from hashlearn.hash_functions.kernels import RBFPoints


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_errors_are_those_of_fits_that_leave_a_row_out(alpha):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 3)), rng.standard_normal((12, 2))
    K = RBFPoints(X, 0.5).gram()
    found = leave_one_out_errors(K, y, alpha)
    for i in range(12):
        others = np.delete(np.arange(12), i)
        fitted = K[i, others] @ np.linalg.solve(K[np.ix_(others, others)] + alpha * np.eye(11), y[others])
        np.testing.assert_allclose(found[i], y[i] - fitted, rtol=1e-9)


def test_noisy_codes_are_smoothed_more():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 2))
    clean = np.where(X > 0.0, 1, -1).astype(np.int8)
    noisy = np.where(rng.random(clean.shape) < 0.3, -clean, clean).astype(np.int8)
    chosen = [alpha_by_leave_one_out(X, codes, 2.0, rng) for codes in (clean, noisy)]
    assert chosen[0] < chosen[1] == max(ALPHAS)


def test_too_little_to_judge_by():
    rng = np.random.default_rng(2)
    assert alpha_by_leave_one_out(np.eye(5), np.ones((5, 1), dtype=np.int8), 1.0, rng) == ALPHAS[0]
    assert alpha_by_leave_one_out(np.eye(50), np.ones((50, 0), dtype=np.int8), 1.0, rng) == ALPHAS[0]


def test_the_default_says_what_it_chose():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((100, 2))
    codes = np.where(X > 0.0, 1, -1).astype(np.int8)
    chosen = alpha_by_leave_one_out(X, codes, 0.7, np.random.default_rng(0))
    fitted = KernelRidge(gamma=0.7).fit(X, codes, np.random.default_rng(0))
    assert f"alpha={chosen:.4g}" in fitted.description
    with pytest.raises(ValueError, match="or 'loo'"):
        KernelRidge(alpha="best")
