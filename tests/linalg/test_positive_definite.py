"""The tiled solve: the answer of LAPACK at float64's accuracy, the same bits for any number of threads."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from hashlearn.core.arrays import EPS
from hashlearn.hash_functions import KernelRidge
from hashlearn.linalg import positive_definite
from hashlearn.linalg.positive_definite import PositiveDefinite


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(positive_definite, "TILE", 40)


def with_condition(n, condition, seed=0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T
    return 0.5 * (A + A.T)


def solve(A, Y):
    return PositiveDefinite(len(A), lambda rows, columns: A[rows, columns]).solve(Y)


@pytest.mark.parametrize("n", [0, 1, 39, 40, 41, 250])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_answer_is_that_of_lapack(n, scale):
    A, Y = with_condition(n, 100.0), scale * np.random.default_rng(1).standard_normal((n, 3))
    np.testing.assert_allclose(solve(A, Y), np.linalg.solve(A, Y), rtol=1e-11, atol=1e-12 * scale)


def test_integers_columns_of_zeros_and_no_columns():
    A = with_condition(90, 10.0)
    Y = np.ones((90, 2), np.int8)
    Y[:, 1] = 0
    X = solve(A, Y)
    np.testing.assert_allclose(X[:, 0], np.linalg.solve(A, np.ones(90)), rtol=1e-11)
    assert not X[:, 1].any()
    assert solve(A, np.empty((90, 0))).shape == (90, 0)


@pytest.mark.parametrize("condition", [1e3, 1e6, 1e8, 1e12])
def test_the_residual_is_that_of_float64_however_ill_conditioned_the_matrix(condition):
    """Refinement of a float32 factor converges up to about 1e7; beyond, float64 factors."""
    A, Y = with_condition(200, condition), np.random.default_rng(2).standard_normal((200, 4))
    X = solve(A, Y)
    residual = np.linalg.norm(Y - A @ X, axis=0)
    assert (residual <= 4.0 * EPS * np.linalg.norm(A) * np.linalg.norm(X, axis=0)).all()


@pytest.mark.parametrize("condition", [1e3, 1e12])
def test_same_bits_for_any_number_of_threads(monkeypatch, condition):
    A, Y = with_condition(200, condition), np.random.default_rng(3).standard_normal((200, 4))
    answers = []
    for threads in ("1", "2", "4"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        answers.append(solve(A, Y))
    np.testing.assert_array_equal(answers[0], answers[1])
    np.testing.assert_array_equal(answers[0], answers[2])


def test_kernel_ridge_has_the_same_bits_for_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((700, 12)).astype(np.float32)
    codes = np.where(X[:, :5] + 0.3 * rng.standard_normal((700, 5)) < 0.0, -1, 1).astype(np.int8)
    coefficients = []
    for threads in ("1", "2", "4"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        coefficients.append(KernelRidge().fit(X, codes, np.random.default_rng(0)).coefficients)
    np.testing.assert_array_equal(coefficients[0], coefficients[1])
    np.testing.assert_array_equal(coefficients[0], coefficients[2])


def test_an_indefinite_matrix_is_refused():
    A = with_condition(100, 10.0)
    A[70, 70] = -1.0
    with pytest.raises(LinAlgError):
        solve(A, np.ones((100, 1)))
