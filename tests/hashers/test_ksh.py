"""KSH: the residual falls with each bit, and the gradient steps help."""

import numpy as np
import pytest

from hashlearn.hashers.baselines.ksh import KSH
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TRAIN, X, Y


def make(**parameters):
    return KSH(**{"n_bits": 8, "n_anchors": 60, "max_iter": 30, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return make(n_bits=12, n_anchors=100, max_iter=100).fit(X[TRAIN], Y[TRAIN])


def residual(codes, n_bits):
    target = n_bits * np.where(Y[TRAIN][:, None] == Y[TRAIN], 1.0, -1.0)
    return np.square(target - codes.astype(float) @ codes.T.astype(float)).mean()


def test_the_residual_falls_with_each_bit(fitted):
    assert np.all(np.diff([residual(fitted.codes_[:, :b], 12) for b in range(13)]) < 0)


def test_gradient_steps_lower_the_residual():
    few, many = (residual(make(max_iter=k).fit(X[TRAIN], Y[TRAIN]).codes_[:, :1], 8) for k in (1, 100))
    assert many < few


def test_it_learns(fitted):
    laws.check_training_codes(fitted)
    assert laws.mean_average_precision(fitted) > 0.75


def test_more_anchors_than_rows_are_all_rows():
    assert len(make(n_anchors=10_000).fit(X[:50], Y[:50]).hash_functions_.points) == 50


def test_bad_parameters_are_named():
    laws.check_bad_parameters_are_named(make, n_anchors=0, gamma="cv", max_iter=0, tol=-1.0)
