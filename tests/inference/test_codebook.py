"""Spreading codewords: same objective or lower, fewer near pairs, and hands off where it does not apply."""

import numpy as np

from hashlearn import bqp, inference, targets
from hashlearn.inference import codebook
from hashlearn.inference.codebook import nearness, spread_codewords
from hashlearn.inference.objective import objective

LABELS = np.repeat(np.arange(10), 20)
TARGET = targets.Labels().build(None, LABELS, np.random.default_rng(0))


def descent_codes(seed, n_bits=8):
    rng = np.random.default_rng(seed)
    start = np.where(rng.random((200, n_bits)) < 0.5, -1.0, 1.0)
    return inference.infer_codes(TARGET, start, spread=False, rng=rng)[0].astype(float)


def test_fewer_near_codewords_at_no_higher_objective():
    gained = 0
    for seed in range(4):
        before = descent_codes(seed)
        after = spread_codewords(TARGET, before, np.random.default_rng(seed))
        assert objective(TARGET, after) <= objective(TARGET, before) + 1e-12
        assert nearness(after[::20]) <= nearness(before[::20])
        gained += nearness(after[::20]) < nearness(before[::20])
        assert len(np.unique(after, axis=0)) == 10
    assert gained > 0


def test_the_known_best_spread_of_ten_words_of_eight_bits_is_found():
    """At the optimal objective 0.76 codebooks with no pair nearer than 3 exist; descent alone often has pairs at 2."""
    after = spread_codewords(TARGET, descent_codes(1), np.random.default_rng(0))[::20]
    distances = (8 - after @ after.T) / 2
    assert distances[np.triu_indices(10, 1)].min() >= 3
    assert objective(TARGET, np.repeat(after, 20, axis=0)) <= 0.76 + 1e-12


def test_left_alone_where_it_does_not_apply(monkeypatch):
    rng = np.random.default_rng(0)
    distance = targets.Distance().build(rng.standard_normal((50, 4)), None, rng)
    codes = np.ones((50, 3))
    assert spread_codewords(distance, codes, rng) is codes
    assert spread_codewords(bqp.as_operator(np.eye(5)), np.ones((5, 2)), rng).shape == (5, 2)
    monkeypatch.setattr(codebook, "MOST_WORDS", 9)
    before = descent_codes(1)
    assert spread_codewords(TARGET, before, rng) is before


def test_classes_without_one_code_get_one_if_the_objective_does_not_rise():
    rng = np.random.default_rng(0)
    mixed = np.where(rng.random((200, 8)) < 0.5, -1.0, 1.0)
    after = spread_codewords(TARGET, mixed, rng)
    assert len(np.unique(after, axis=0)) == 10
    assert objective(TARGET, after) < objective(TARGET, mixed)
    assert all(len(np.unique(after[k == LABELS], axis=0)) == 1 for k in range(10))


def test_codes_stay_where_one_code_a_class_would_raise_the_objective(monkeypatch):
    monkeypatch.setattr(codebook, "FLIPS_PER_ENTRY", 0)  # nothing is better than the majorities, which are all equal
    codes = descent_codes(0)
    codes[np.arange(200) % 20 < 12] = 1.0
    assert objective(TARGET, codes) < objective(TARGET, np.ones((200, 8)))
    assert spread_codewords(TARGET, codes, np.random.default_rng(0)) is codes


def test_small_classes_are_not_crowded():
    """Sizes from 200 to 8: the weighted objective leaves the small classes within 2 bits of each other."""
    sizes = (200 * 0.7 ** np.arange(10)).astype(int)
    labels = np.repeat(np.arange(10), sizes)
    target, last = targets.Labels().build(None, labels, np.random.default_rng(0)), np.cumsum(sizes) - 1
    rng = np.random.default_rng(0)
    start = np.where(rng.random((len(labels), 8)) < 0.5, -1.0, 1.0)
    before = inference.infer_codes(target, start, spread=False, rng=rng)[0].astype(float)
    after = spread_codewords(target, before, rng)
    assert len(np.unique(after, axis=0)) == 10
    near = [((8 - words @ words.T) / 2)[np.triu_indices(10, 1)] for words in (before[last], after[last])]
    assert (near[0] < 3).sum() >= 5 > (near[1] < 3).sum()


def test_classes_of_unequal_sizes_are_spread_at_a_nearly_equal_objective():
    """Sizes within a fifth of each other: no ties, yet the codewords of equal sizes are within reach."""
    sizes = np.array([20, 22, 18, 21, 19, 23, 17, 20, 22, 18])
    labels = np.repeat(np.arange(10), sizes)
    target, first = targets.Labels().build(None, labels, np.random.default_rng(0)), np.cumsum(sizes) - 1
    nearest = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        start = np.where(rng.random((len(labels), 8)) < 0.5, -1.0, 1.0)
        before = inference.infer_codes(target, start, spread=False, rng=rng)[0].astype(float)
        after = spread_codewords(target, before, rng)
        assert objective(target, after) <= (1.0 + codebook.NEAR_EQUAL) * objective(target, before) + 1e-12
        assert nearness(after[first]) <= nearness(before[first])
        nearest.append(((8 - after[first] @ after[first].T) / 2)[np.triu_indices(10, 1)].min())
    assert max(nearest) >= 3
