"""Squared hinge: all bits together give what LibLinear gives bit by bit, and no start is needed."""

import numpy as np
from sklearn.svm import LinearSVC

from hashlearn.hash_functions.kernel_methods import SquaredHinge


def test_it_reaches_liblinear_and_one_step_lowers_the_loss():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 6))
    signs = np.where(rows @ rng.standard_normal((6, 3)) + rng.standard_normal((300, 3)) > 0.0, 1, -1).astype(np.int8)
    wide = np.column_stack([rows, np.ones(300)])
    svm = SquaredHinge(lambda a, b: rows[a:b], wide.T @ wide, np.ones(7), lambda function: function(0, 300))
    weights = svm.fit(signs, np.zeros((7, 3)), 300)
    for bit in range(3):
        reference = LinearSVC(C=0.5, fit_intercept=False, tol=1e-10, max_iter=100_000, dual=False)
        np.testing.assert_allclose(weights[:, bit], reference.fit(wide, signs[:, bit]).coef_[0], atol=1e-4)
    one_step = svm.fit(signs, np.zeros((7, 3)), 1)
    missing = np.maximum(1.0 - signs * (wide @ one_step), 0.0)
    assert (0.5 * (one_step**2).sum(axis=0) + 0.5 * (missing**2).sum(axis=0) < 150.0).all()  # weights of 0: 150
