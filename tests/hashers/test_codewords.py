"""Codewords after inference: spread at the same objective or a lower one, and near each other for confused classes."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher
from hashlearn.hashers import codewords
from hashlearn.hashers.codewords import _total, arranged, best_order, confusions, nearness, spread_codewords
from hashlearn.inference import infer_group_codes
from hashlearn.targets import Groups, Labels, SharedLabels

RNG = np.random.default_rng
X, Y = (part[:600] for part in load_digits(return_X_y=True))
TEN_CLASSES = Labels().groups(None, np.repeat(np.arange(10), 20), RNG(0))


def inferred(groups, seed, n_bits=8):
    """Codewords of a single start, which crowd more often than the best of several."""
    return infer_group_codes(groups, n_bits, solver="sweeps", rng=RNG(seed))[0].astype(float)


def pair_distances(words):
    return ((words.shape[1] - words @ words.T) / 2)[np.triu_indices(len(words), 1)]


def test_fewer_near_codewords_at_no_higher_objective():
    gained = 0
    for seed in range(4):
        before = inferred(TEN_CLASSES, seed)
        after = spread_codewords(before, TEN_CLASSES, RNG(seed))
        assert TEN_CLASSES.objective(after) <= TEN_CLASSES.objective(before) + 1e-12
        assert nearness(after) <= nearness(before)
        gained += nearness(after) < nearness(before)
        assert len(np.unique(after, axis=0)) == 10
    assert gained > 0


def test_the_known_best_spread_of_ten_words_of_eight_bits_is_found():
    """At the optimal objective 0.76 codebooks with no pair nearer than 3 exist; descent alone often has pairs at 2."""
    after = spread_codewords(inferred(TEN_CLASSES, 1), TEN_CLASSES, RNG(0))
    assert pair_distances(after).min() >= 3
    assert TEN_CLASSES.objective(after) <= 0.76 + 1e-12


def test_codewords_that_are_far_apart_stay():
    words = inferred(TEN_CLASSES, 0, 32)
    assert pair_distances(words).min() >= codewords.FAR_ENOUGH
    assert spread_codewords(words, TEN_CLASSES, RNG(0)) is words


def test_groups_that_are_mostly_single_rows_stay():
    groups = Labels().groups(None, np.r_[np.arange(12), np.arange(4)], RNG(0))
    words = np.ones((12, 8))
    np.testing.assert_array_equal(spread_codewords(words, groups, RNG(0)), words)
    of_classes = Labels().groups(None, np.repeat(np.arange(12), 2), RNG(0))
    assert (spread_codewords(words, of_classes, RNG(0)) != words).any()


def test_label_sets_that_share_a_label_may_have_near_codewords():
    groups = SharedLabels().groups(None, np.array([[0, 1], [1, 0], [1, 1]]), RNG(0))
    words = np.ones((3, 16))
    words[1, :8] = -1.0
    words[2, :2] = -1.0
    assert spread_codewords(words, groups, RNG(0)) is words  # 8 bits between the two that share none


def test_small_classes_are_not_crowded():
    """Sizes from 200 to 8: the weighted objective leaves the small classes within 2 bits of each other."""
    sizes = (200 * 0.7 ** np.arange(10)).astype(int)
    groups = Labels().groups(None, np.repeat(np.arange(10), sizes), RNG(0))
    before = inferred(groups, 0)
    after = spread_codewords(before, groups, RNG(0))
    assert len(np.unique(after, axis=0)) == 10
    assert (pair_distances(before) < 3).sum() >= 5 > (pair_distances(after) < 3).sum()


def test_classes_of_unequal_sizes_are_spread_at_a_nearly_equal_objective():
    """Sizes within a fifth of each other: no ties, yet the codewords of equal sizes are within reach."""
    groups = Labels().groups(None, np.repeat(np.arange(10), [20, 22, 18, 21, 19, 23, 17, 20, 22, 18]), RNG(0))
    nearest = []
    for seed in range(3):
        before = inferred(groups, seed)
        after = spread_codewords(before, groups, RNG(seed))
        assert groups.objective(after) <= (1.0 + codewords.NEAR_EQUAL) * groups.objective(before) + 1e-12
        assert nearness(after) <= nearness(before)
        nearest.append(pair_distances(after).min())
    assert max(nearest) >= 3


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
    K, one_hot = RBFPoints(rows, gamma).gram(), np.eye(3)[member]
    mixed = np.zeros((3, 3))
    for i in range(40):
        others = np.delete(np.arange(40), i)
        coefficients = np.linalg.solve(K[np.ix_(others, others)] + 0.1 * np.eye(39), one_hot[others])
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


def test_only_classes_are_arranged():
    words = inferred(TEN_CLASSES, 0)
    two = Labels().groups(None, np.arange(20) % 2, RNG(0))
    pair = words[:2]
    assert arranged(pair, two, X[:20], RNG(0)) is pair
    overlapping = Groups(Y, np.where(np.add.outer(np.arange(10), np.arange(10)) == 3, 1.0, TEN_CLASSES.similarity))
    assert arranged(words, overlapping, X, RNG(0)) is words


def test_a_thousand_codewords():
    rng = RNG(1)
    words = np.where(rng.random((1000, 32)) < 0.5, -1.0, 1.0)
    confused = rng.random((1000, 1000))
    confused = confused + confused.T
    order = best_order(words, confused, np.full(1000, 1e-3), rng)
    assert sorted(order) == list(range(1000))
    assert cost(words, confused, order) < cost(words, confused, np.arange(1000))
