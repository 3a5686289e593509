"""γ rules, landmarks beyond the limit."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances
from sklearn.svm import LinearSVC

from hashlearn import TwoStepHasher
from hashlearn.hash_functions import RBFSVM, KernelRidge, kernel_methods
from hashlearn.hash_functions import kernels as kernels_module
from hashlearn.hash_functions.kernels import RBFPoints, choose_gamma
from tests.hash_functions.digits import bit_accuracy, learn_and_new


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_gamma_rules_are_their_definitions(rng, convert, monkeypatch):
    monkeypatch.setattr("hashlearn.core.threads.ROWS_PER_BLOCK", 256)  # two blocks
    X = learn_and_new()[0]
    squared = pairwise_distances(X) ** 2
    nearest = np.sort(squared + np.diag(np.full(len(X), np.inf)), axis=1)[:, :50]
    assert choose_gamma("neighbors", convert(X), rng)[0] == pytest.approx(1 / nearest.mean())
    assert choose_gamma("scale", convert(X), rng)[0] == pytest.approx(1 / (64 * X.var()))
    assert choose_gamma("mean", convert(X), rng)[0] == pytest.approx(0.5 / squared.mean())
    assert choose_gamma(0.25, convert(X), rng) == (0.25, "given")


def test_a_sample_of_rows_gives_nearly_the_same_gamma(rng, monkeypatch):
    X = np.random.default_rng(1).standard_normal((9000, 5))
    sampled = choose_gamma("neighbors", X, rng)[0]
    monkeypatch.setattr(kernels_module, "SAMPLED_ROWS", 2000)
    assert sampled == pytest.approx(choose_gamma("neighbors", X, rng)[0], rel=0.2)


@pytest.mark.parametrize("rule", ["neighbors", "scale", "mean"])
def test_equal_rows_have_a_finite_gamma(rng, rule):
    for n in (1, 2, 100):
        assert choose_gamma(rule, np.ones((n, 3)), rng)[0] == 1.0


def test_many_duplicates_fall_back_on_all_distances(rng):
    X = np.repeat(np.array([[0.0], [3.0]]), 100, axis=0)
    assert choose_gamma("neighbors", X, rng)[0] == pytest.approx(1 / 9.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_is_the_kernel(dtype):
    X = np.random.default_rng(0).standard_normal((1100, 7)) + 50.0
    points = RBFPoints(X, 0.3, dtype)
    K = points.gram()
    np.testing.assert_array_equal(K, K.T)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(K, np.exp(-0.3 * pairwise_distances(X) ** 2), atol=tolerance)
    np.testing.assert_allclose(points.kernel(X[:20].astype(dtype)), K[:20], atol=tolerance)


@pytest.mark.parametrize("spec", [RBFSVM, KernelRidge])
def test_landmarks_are_near_the_exact_answer_and_say_so(rng, spec, caplog):
    X, codes, X_new, codes_new = learn_and_new()
    exact = spec().fit(X, codes, rng).decision_function(X_new)
    with caplog.at_level(logging.INFO):
        landmarks = spec(max_gram_rows=299, n_landmarks=150).fit(X, codes, rng)
    assert "150 Nyström landmarks because 300 rows are more than 299" in landmarks.description
    assert "150 Nyström landmarks" in caplog.text
    assert landmarks.points.shape == (150, 64)
    accuracy = bit_accuracy(landmarks.decision_function(X_new), codes_new)
    assert accuracy > bit_accuracy(exact, codes_new) - 0.03


def test_all_rows_as_landmarks_is_exact_ridge(rng):
    X, codes, X_new, _ = learn_and_new()
    exact = KernelRidge().fit(X, codes, rng).decision_function(X_new)
    landmarks = KernelRidge(max_gram_rows=1, n_landmarks=300).fit(X, codes, rng).decision_function(X_new)
    np.testing.assert_allclose(landmarks, exact, atol=1e-3)


def test_landmark_svm_minimises_the_squared_hinge(rng, monkeypatch):
    X, codes, _, _ = learn_and_new()
    monkeypatch.setattr(kernel_methods, "PASSES", 2000)
    monkeypatch.setattr(kernel_methods, "SETTLED", 1e-7)
    landmarks = kernel_methods.Landmarks(X[rng.choice(len(X), 40, replace=False)], 0.1)
    coefficients, intercepts = kernel_methods.landmark_svm(landmarks, X, codes[:, :4], C=1.0)
    margins, features = landmarks.points.kernel(X) @ coefficients + intercepts, landmarks.features(X)
    for b in range(4):
        reference = LinearSVC(C=1.0, dual=False, intercept_scaling=1000.0, tol=1e-8).fit(features, codes[:, b])
        np.testing.assert_allclose(margins[:, b], reference.decision_function(features), atol=1e-2)


def test_features_that_are_not_kept_are_made_again(rng, monkeypatch):
    X, codes, X_new, _ = learn_and_new()
    spec = RBFSVM(max_gram_rows=1, n_landmarks=50, gamma=0.1)
    kept = spec.fit(X, codes, np.random.default_rng(0)).decision_function(X_new)
    monkeypatch.setattr("hashlearn.hash_functions.kernel_methods.memory_share", lambda: 0)
    made = spec.fit(X, codes, np.random.default_rng(0)).decision_function(X_new)
    np.testing.assert_array_equal(made, kept)


@pytest.mark.parametrize("spec", [RBFSVM, KernelRidge])
def test_memory_refuses_a_gram_matrix_and_never_replaces_it(spec, rng, monkeypatch):
    """The path of a fit depends on n alone, so that the same seed gives the same codes on every machine."""
    X, codes, _, _ = learn_and_new()
    monkeypatch.setattr(kernel_methods, "memory_share", lambda: 4 * 300**2)
    gram = spec().fit(X, codes, rng)
    assert "landmarks" not in gram.description
    monkeypatch.setattr(kernel_methods, "memory_share", lambda: 4 * 299**2)
    message = "the Gram matrix of 300 rows takes 0.0 GB, more than half.*max_gram_rows=299 or less gives landmarks"
    for call in (lambda: spec().fit(X, codes, rng), lambda: TwoStepHasher(4, hash_function=spec()).fit(X)):
        with pytest.raises(MemoryError, match=message):
            call()
    assert "landmarks" in spec(max_gram_rows=299, n_landmarks=50).fit(X, codes, rng).description
