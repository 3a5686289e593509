"""BRE: the objective never rises, a weight is solved exactly, pairs want what labels or distances say."""

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn.hashers.baselines.bre import BRE, descend_bit, distance_pairs, labeled_pairs
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TRAIN, X, Y


def make(**parameters):
    return BRE(**{"n_bits": 8, "n_anchors": 15, "n_pairs": 20, "n_sweeps": 2, "random_state": 0, **parameters})


@pytest.mark.parametrize("labels", [Y[TRAIN], None])
def test_the_objective_never_rises_and_is_what_it_says(labels):
    hasher = make(n_bits=12, n_anchors=30, n_sweeps=4, tol=1e-9).fit(X[TRAIN], labels)
    assert np.all(np.diff(hasher.objectives_) < 0)
    assert hasher.objectives_[-1] < 0.9 * hasher.objectives_[0]
    rng = np.random.default_rng(0)
    pairs = distance_pairs(X[TRAIN], 20, rng) if labels is None else labeled_pairs(labels, 20, rng)
    hamming = (hasher.codes_[pairs.owners] != hasher.codes_[pairs.partners]).mean(axis=1)
    assert hasher.objectives_[-1] == pytest.approx(np.square(pairs.distances - hamming).mean())
    laws.check_training_codes(hasher)


def test_labels_help():
    with_labels, without = (make(n_bits=16, n_anchors=40).fit(X[TRAIN], y) for y in (Y[TRAIN], None))
    assert laws.mean_average_precision(with_labels) > 0.55
    assert laws.mean_average_precision(without) > 0.3


def test_one_weight_is_solved_exactly():
    rng = np.random.default_rng(1)
    n = 30
    pairs = labeled_pairs(rng.integers(0, 3, n), 8, rng)
    K = rng.standard_normal((n, 2))
    price = rng.standard_normal((n, n))
    costs = (price + price.T)[pairs.owners, pairs.partners]

    def value(weights):
        bits = K @ weights >= 0.0
        return 0.5 * costs[bits[pairs.owners] != bits[pairs.partners]].sum()

    weights = np.array([0.7, -0.2])
    before, signs = value(weights), np.where(K @ weights >= 0.0, 1.0, -1.0)
    change = descend_bit(K, weights, np.array([1]), pairs, costs, signs)
    assert weights[0] == 0.7
    assert value(weights) - before == pytest.approx(change)
    np.testing.assert_array_equal(signs > 0, K @ weights >= 0.0)
    grid = np.tan(np.linspace(-1.57079, 1.57079, 20_001))
    assert value(weights) <= min(value(np.array([0.7, w])) for w in grid) + 1e-9


def test_pairs_of_labels():
    pairs = labeled_pairs(Y[TRAIN], 20, np.random.default_rng(0))
    same = Y[TRAIN][pairs.owners] == Y[TRAIN][pairs.partners]
    np.testing.assert_array_equal(pairs.distances, np.where(same, 0.0, 1.0))
    assert 0.08 < same.mean() < 0.12  # as among all pairs
    assert len(pairs.partners) == 2 * 20 * 300
    assert (pairs.owners != pairs.partners).all()
    forth = np.sort(pairs.owners * 300 + pairs.partners)
    np.testing.assert_array_equal(forth, np.sort(pairs.partners * 300 + pairs.owners))
    indicators = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
    several = labeled_pairs(indicators, 40, np.random.default_rng(0))
    wanted = {(0, 1): 0.0, (1, 2): 0.0, (0, 2): 1.0, (0, 3): 1.0, (1, 3): 1.0, (2, 3): 1.0}
    for i, j, distance in zip(several.owners, several.partners, several.distances, strict=True):
        assert distance == wanted[min(i, j), max(i, j)]


def test_pairs_of_distances():
    pairs = distance_pairs(X[TRAIN], 20, np.random.default_rng(0))
    unit = X[TRAIN] / np.linalg.norm(X[TRAIN], axis=1, keepdims=True)
    expected = 0.5 * np.square(unit[pairs.owners] - unit[pairs.partners]).sum(axis=1)
    np.testing.assert_allclose(pairs.distances, expected, atol=1e-12)
    same = distance_pairs(sp.csr_array(X[TRAIN]), 20, np.random.default_rng(0))
    np.testing.assert_allclose(same.distances, pairs.distances)
    centered = X[TRAIN] - X[TRAIN].mean(axis=0)
    assert distance_pairs(centered, 20, np.random.default_rng(0)).distances.max() == 1.0


def test_bad_parameters_are_named():
    laws.check_bad_parameters_are_named(make, n_anchors=0, n_pairs=0, gamma=0.0, n_sweeps=0, tol=0.0)
