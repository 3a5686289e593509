"""Codewords of confused classes lie near each other; the objective stays, and so do codes that are no codewords."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher
from hashlearn.hashers.arrangement import _total, arranged, best_order, confusions

RNG = np.random.default_rng
X, Y = (part[:600] for part in load_digits(return_X_y=True))


def cost(words, confused, order):
    return _total(confused, 0.5 * (words.shape[1] - words @ words.T), np.asarray(order))


@pytest.mark.parametrize("seed", range(5))
def test_orders_of_six_classes_are_the_best_of_all(seed):
    rng = RNG(seed)
    words = np.where(rng.random((6, 7)) < 0.5, -1.0, 1.0)
    confused = rng.random((6, 6))
    confused = confused + confused.T
    # Shares that make every order as good to the objective: only the sum over classes counts.
    order = best_order(words, confused, np.full(6, 1 / 6), RNG(0))
    assert sorted(order) == list(range(6))
    least = min(cost(words, confused, trial) for trial in itertools.permutations(range(6)))
    assert cost(words, confused, order) == pytest.approx(least)


def test_class_sizes_keep_their_say():
    words = np.array([[1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0]])
    confused = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    # Nearly all samples are in classes 0 and 1: bringing their codewords together would raise the objective.
    assert list(best_order(words, confused, np.array([0.495, 0.495, 0.01]), RNG(0))) == [0, 1, 2]


def test_leave_one_out_scores_are_those_of_fits_without_the_sample():
    rows, member = X[:40], np.arange(40) % 3
    found = confusions(rows, member, RNG(0))
    from hashlearn.hash_functions.kernels import RBFPoints, choose_gamma

    gamma, _ = choose_gamma("neighbors", rows, RNG(0))
    K, told = RBFPoints(rows, gamma).gram(), np.eye(3)[member]
    mixed = np.zeros((3, 3))
    for i in range(40):
        others = np.delete(np.arange(40), i)
        coefficients = np.linalg.solve(K[np.ix_(others, others)] + 0.1 * np.eye(39), told[others])
        mixed[member[i]] += np.maximum(K[i, others] @ coefficients, 0.0) / np.sum(member == member[i])
    np.testing.assert_allclose(found, (mixed + mixed.T) * (1 - np.eye(3)), atol=1e-10)


def test_confused_classes_end_nearer_and_the_objective_stays():
    plain = TwoStepHasher(8, arrange=False, random_state=0).fit(X, Y)
    ours = TwoStepHasher(8, random_state=0).fit(X, Y)
    confused = confusions(np.sqrt(X), Y, RNG(0))
    first = [int(np.flatnonzero(label == Y)[0]) for label in range(10)]
    before, after = (hasher.codes_[first].astype(float) for hasher in (plain, ours))
    assert sorted(map(tuple, before)) == sorted(map(tuple, after))
    assert cost(after, confused, np.arange(10)) < cost(before, confused, np.arange(10))


def test_codes_that_differ_within_a_class_stay():
    codes = np.where(RNG(0).random((600, 8)) < 0.5, -1, 1).astype(np.int8)
    assert arranged(X, Y, codes, RNG(0)) is codes


def test_two_classes_and_a_thousand():
    codes = np.array([[1, 1], [-1, -1]], dtype=np.int8)[np.arange(20) % 2]
    assert arranged(X[:20], np.arange(20) % 2, codes, RNG(0)) is codes
    rng = RNG(1)
    words = np.where(rng.random((1000, 32)) < 0.5, -1.0, 1.0)
    confused = rng.random((1000, 1000))
    confused = confused + confused.T
    order = best_order(words, confused, np.full(1000, 1e-3), rng)
    assert sorted(order) == list(range(1000))
    assert cost(words, confused, order) < cost(words, confused, np.arange(1000))
