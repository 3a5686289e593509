"""The looser relaxation that inference uses must not cost codes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import bqp
from hashlearn.inference import infer_codes, start_codes
from hashlearn.targets import as_target


@pytest.mark.parametrize("name", ["distance", "thresholded_distance"])
def test_named_sdr_is_as_good_as_one_solved_to_the_default(name):
    X = load_digits().data[:700]
    Y = as_target(name, None).build(X, None, np.random.default_rng(0))
    start = start_codes("pca", X, 8, np.random.default_rng(0))
    loose, tight = (
        infer_codes(Y, start, solver=solver, n_sweeps=2, rng=np.random.default_rng(1))[1]
        for solver in ("sdr", bqp.SemidefiniteRelaxation())
    )
    assert loose.final_objective == pytest.approx(tight.final_objective, rel=0.02)
    assert loose.final_objective < loose.start_objective
    assert all(record.bound <= record.value for record in loose.bits)
