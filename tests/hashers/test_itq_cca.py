"""ITQ-CCA: the quantisation error never rises, and the directions are canonical ones."""

import numpy as np
import pytest

from hashlearn.core.labels import label_indicators
from hashlearn.hashers.baselines.itq import ITQCCA, canonical_directions
from hashlearn.linalg.principal_axes import itq_rotation, random_rotation
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TRAIN, X, Y


def make(**parameters):
    return ITQCCA(**{"n_bits": 8, "random_state": 0, **parameters})


@pytest.mark.parametrize("n_bits", [4, 9, 16])
def test_the_quantization_error_never_rises(n_bits):
    errors = []
    for n_iter in (1, 2, 5, 50):
        margins = make(n_bits=n_bits, n_iter=n_iter).fit(X[TRAIN], Y[TRAIN]).decision_function(X[TRAIN])
        errors.append(np.square(margins - np.sign(margins)).sum())
    assert np.all(np.diff(errors) <= 1e-9 * errors[0])
    assert errors[-1] < errors[0]


def test_the_rotation_is_one_and_its_errors_are_what_they_say():
    V = np.random.default_rng(0).standard_normal((50, 5))
    R, errors = itq_rotation(V, random_rotation(V.shape[1], np.random.default_rng(1)), 7)
    np.testing.assert_allclose(R @ R.T, np.eye(5), atol=1e-12)
    assert errors[-1] == pytest.approx(np.square(np.sign(V @ R) - V @ R).sum())
    assert len(errors) == 8


def test_directions_have_the_canonical_correlations():
    rows = X[TRAIN]
    r = canonical_directions(rows, rows.mean(axis=0), label_indicators(Y[TRAIN]), (1e-9, 1e-9))[1]
    assert len(r) <= 10
    assert np.all(np.diff(r) <= 0)
    assert np.all((r >= 0) & (r <= 1))
    # The best linear predictor of a class from the scores explains r² of what can be explained.
    Z = X[TRAIN] - X[TRAIN].mean(axis=0)
    C = (Y[TRAIN][:, None] == np.arange(10)).astype(float)
    C -= C.mean(axis=0)
    predicted = Z @ np.linalg.lstsq(Z, C, rcond=None)[0]
    whitened = np.linalg.pinv(C.T @ C)
    assert np.sum(r[:9] ** 2) == pytest.approx(np.trace(whitened @ predicted.T @ C), rel=1e-3)


def test_it_learns():
    assert laws.mean_average_precision(make(n_bits=16).fit(X[TRAIN], Y[TRAIN])) > 0.6


def test_bad_parameters_are_named():
    laws.check_bad_parameters_are_named(make, regularization=0.0, n_iter=0)
