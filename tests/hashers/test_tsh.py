"""TSH is TwoStepHasher with NOPT bits and labels it cannot do without."""

import numpy as np
from sklearn.base import clone

from hashlearn import TwoStepHasher
from hashlearn.hashers import TSH
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TRAIN, X, Y


def test_it_is_two_step_hashing_with_nopt():
    mine = TSH(12, random_state=3).fit(X[TRAIN], Y[TRAIN])
    same = TwoStepHasher.paper("nopt", 12, monotone=True, random_state=3).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(mine.codes_, same.codes_)
    np.testing.assert_array_equal(mine.encode(X), same.encode(X))
    assert mine.inference_report_.solver == "nopt"
    objectives = [mine.inference_report_.start_objective, *mine.inference_report_.objectives]
    assert objectives == sorted(objectives, reverse=True)
    assert laws.mean_average_precision(mine) > 0.85


def test_its_parameters_are_those_of_two_step_hashing():
    parameters = TSH(n_bits=5, init="itq").get_params()
    assert set(parameters) == set(TwoStepHasher().get_params())
    assert clone(TSH(n_bits=5, init="itq")).get_params() == parameters
