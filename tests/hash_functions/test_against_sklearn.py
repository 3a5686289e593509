"""All bits at once gives what scikit-learn gives bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as ReferenceRidge
from sklearn.svm import SVC, LinearSVC

from hashlearn.hash_functions import RBFSVM, KernelRidge, LinearSVM
from tests.hash_functions.digits import learn_and_new

VARYING = range(6)


@pytest.mark.parametrize(("gamma", "C"), [(0.05, 10.0), (0.2, 1.0), (1.0, 100.0)])
def test_rbf_svm_is_svc(gamma, C):
    X, codes, X_new, _ = learn_and_new()
    margins = RBFSVM(C=C, gamma=gamma, tol=1e-9).fit(X, codes, np.random.default_rng(0)).decision_function(X_new)
    for b in VARYING:
        expected = SVC(kernel="rbf", gamma=gamma, C=C, tol=1e-9).fit(X, codes[:, b]).decision_function(X_new)
        np.testing.assert_allclose(margins[:, b], expected, atol=1e-6)
        np.testing.assert_array_equal(margins[:, b] >= 0, expected >= 0)


def test_rbf_svm_keeps_the_union_of_support_vectors_only():
    X, codes, _, _ = learn_and_new()
    fitted = RBFSVM(gamma=0.05).fit(X, codes, np.random.default_rng(0))
    support = [SVC(kernel="rbf", gamma=0.05, C=10.0).fit(X, codes[:, b]).support_ for b in range(4)]
    union = np.unique(np.concatenate(support))
    assert len(union) < len(X)
    np.testing.assert_array_equal(fitted.points, X[union])
    assert f"{len(union)} support vectors" in fitted.description


def test_features_far_from_zero_keep_their_digits():
    X, codes, X_new, _ = learn_and_new()
    near = RBFSVM(gamma=0.05).fit(X.astype(np.float32), codes, np.random.default_rng(0))
    far = RBFSVM(gamma=0.05).fit((X + 1000.0).astype(np.float32), codes, np.random.default_rng(0))
    moved = far.decision_function((X_new + 1000.0).astype(np.float32))
    np.testing.assert_allclose(moved, near.decision_function(X_new.astype(np.float32)), atol=5e-3)


@pytest.mark.parametrize(("gamma", "alpha"), [(0.05, 1.0), (0.2, 0.01)])
def test_kernel_ridge_is_kernel_ridge(gamma, alpha):
    X, codes, X_new, _ = learn_and_new()
    margins = KernelRidge(alpha=alpha, gamma=gamma).fit(X, codes, np.random.default_rng(0)).decision_function(X_new)
    reference = ReferenceRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(X, codes.astype(float))
    np.testing.assert_allclose(margins[:, VARYING], reference.predict(X_new)[:, VARYING], atol=1e-9)


def test_linear_svm_is_linear_svc_on_rows_of_typical_norm_one():
    X, codes, X_new, _ = learn_and_new()
    margins = LinearSVM(C=2.0).fit(X, codes, np.random.default_rng(0)).decision_function(X_new)
    norm = np.sqrt((X**2).sum(axis=1).mean())
    for b in VARYING:
        reference = LinearSVC(C=2.0, dual=False).fit(X / norm, codes[:, b])
        np.testing.assert_allclose(margins[:, b], reference.decision_function(X_new / norm), atol=1e-3)


def test_linear_svm_with_more_features_than_rows():
    X, codes, _, _ = learn_and_new()
    wide = np.hstack([X, X**2, X**3])[:100]
    margins = LinearSVM().fit(wide, codes[:100], np.random.default_rng(3)).decision_function(wide)
    norm = np.sqrt((wide**2).sum(axis=1).mean())
    reference = LinearSVC(dual=True, max_iter=10_000, random_state=0).fit(wide / norm, codes[:100, 0])
    np.testing.assert_allclose(margins[:, 0], reference.decision_function(wide / norm), atol=2e-3)
    again = LinearSVM().fit(wide, codes[:100], np.random.default_rng(3)).decision_function(wide)
    np.testing.assert_array_equal(again, margins)


def test_units_of_the_features_do_not_matter_to_linear_svm():
    X, codes, _, _ = learn_and_new()
    small = LinearSVM().fit(X, codes, np.random.default_rng(0)).decision_function(X)
    large = LinearSVM().fit(X * 1024.0, codes, np.random.default_rng(0)).decision_function(X * 1024.0)
    np.testing.assert_allclose(large, small, atol=1e-9)
