"""SDH: the objective falls in every half-step, and a column of codes is exact given the others."""

import itertools

import numpy as np
import pytest

from hashlearn.hashers.baselines.sdh import SDH, cyclic_descent
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TRAIN, X, Y


def make(**parameters):
    return SDH(**{"n_bits": 8, "n_anchors": 80, "random_state": 0, **parameters})


@pytest.mark.parametrize("fidelity", [1e-5, 1.0])
def test_the_objective_falls_in_every_half_step(fidelity):
    hasher = make(n_bits=12, fidelity=fidelity, max_iter=8).fit(X[TRAIN], Y[TRAIN])
    steps = np.diff(hasher.objectives_)
    assert len(steps) % 3 == 0
    assert np.all(steps <= 1e-9 * hasher.objectives_[0])
    assert hasher.objectives_[-1] < 0.9 * hasher.objectives_[0]


def test_no_column_and_in_the_end_no_entry_can_be_better():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((5, 3))
    Q = rng.standard_normal((20, 5))
    B = rng.choice([-1.0, 1.0], (20, 5))

    def values(rows):
        return np.einsum("...a,ab,...b->...", rows, W @ W.T, rows) - 2.0 * (rows * Q).sum(axis=-1)

    before = values(B)
    assert cyclic_descent(B, W @ W.T, Q, passes=100)
    after = values(B)
    assert np.all(after <= before + 1e-12)
    for b in range(5):
        turned = B.copy()
        turned[:, b] *= -1.0
        assert np.all(values(turned) >= after - 1e-12)
    everything = np.array(list(itertools.product([-1.0, 1.0], repeat=5)))
    best = np.min([values(np.broadcast_to(row, (20, 5))) for row in everything], axis=0)
    assert np.mean(after <= best + 1e-9) > 0.5
    assert not cyclic_descent(B, W @ W.T, Q)


def test_it_learns_and_predicts_its_codes():
    hasher = make(n_bits=16, n_anchors=300).fit(X[TRAIN], Y[TRAIN])
    agreement = np.mean((hasher.transform(X[TRAIN]) > 0) == (hasher.codes_ > 0))
    assert agreement > 0.99
    assert laws.mean_average_precision(hasher) > 0.85


def test_bad_parameters_are_named():
    laws.check_bad_parameters_are_named(
        make, n_anchors=0, gamma=-1, regularization=0, fidelity=0, smoothness=0, max_iter=0
    )
