"""COSDISH: the objective never rises in its alternation, and classes end with codes of their own."""

import numpy as np
import pytest

from hashlearn.hashers.baselines.cosdish import COSDISH
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TRAIN, X, Y


def make(**parameters):
    return COSDISH(**{"n_bits": 8, "n_rounds": 3, "random_state": 0, **parameters})


@pytest.mark.parametrize("n_columns", [None, 8, 300])
def test_the_objective_never_rises_in_the_alternation(n_columns):
    hasher = make(n_columns=n_columns).fit(X[TRAIN], Y[TRAIN])
    assert len(hasher.objectives_) == 3
    for values in hasher.objectives_:
        assert len(values) == 7
        assert np.all(np.diff(values) <= 1e-12)
    assert hasher.objectives_[-1][-1] < 0.9 * hasher.objectives_[0][0]


def test_with_all_columns_the_objective_is_that_of_all_pairs():
    hasher = make(n_columns=300, n_rounds=1).fit(X[TRAIN], Y[TRAIN])
    codes = hasher.codes_.astype(float)
    same = Y[TRAIN][:, None] == Y[TRAIN]
    wanted = np.where(same, (~same).sum() / same.sum(), -1.0)
    assert hasher.objectives_[0][-1] == pytest.approx(np.square(codes @ codes.T / 8 - wanted).mean())


def test_rows_outside_take_the_signs_of_the_sampled_columns():
    hasher = make(monotone=False)
    rng = np.random.default_rng(0)
    codes = rng.choice([-1.0, 1.0], (30, 8))
    similar = rng.choice([-1.0, 1.0], (30, 5))
    columns, outside = np.arange(5), np.arange(30) >= 5
    before = codes.copy()
    hasher._rows_outside(codes, similar, columns, outside)
    np.testing.assert_array_equal(codes[:5], before[:5])
    np.testing.assert_array_equal(codes[5:], np.sign((similar @ before[:5])[5:]))


def test_it_learns():
    for parameters in ({}, {"monotone": False}):
        hasher = make(n_bits=16, n_rounds=10, **parameters).fit(X[TRAIN], Y[TRAIN])
        assert laws.mean_average_precision(hasher) > 0.65
    laws.check_codes_and_margins(hasher)


def test_bad_parameters_are_named():
    laws.check_bad_parameters_are_named(make, n_columns=0, n_rounds=0, n_alternations=0, hash_function="svm")
