"""Boosted trees on quantised features: bins keep the order, margins are sums of leaves, thread count is nothing."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn.hash_functions import DistinctBits, ForestMargins
from hashlearn.hash_functions.trees import bin_rows, boost, forest_margins
from tests.hash_functions.digits import bit_accuracy, learn_and_new

ONE_BIT = DistinctBits(np.arange(1), np.arange(1), np.ones(1, dtype=np.int8))


def grown(X, y, n_trees=40, depth=3, weights=None, seed=0):
    weights = np.ones(len(y)) if weights is None else weights
    return boost(bin_rows(X), y, weights, n_trees, depth, np.random.default_rng(seed))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_keep_the_order_and_tell_few_values_apart(dtype):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(500), rng.integers(0, 5, 500), np.ones(500)]).astype(dtype)
    rows = bin_rows(X)
    np.testing.assert_array_equal(rows.features, [0, 1])
    np.testing.assert_array_equal(rows.codes[:, 1], X[:, 1])
    order = np.argsort(X[:, 0], kind="stable")
    assert np.all(np.diff(rows.codes[order, 0].astype(int)) >= 0)
    counts = np.bincount(rows.codes[:, 0], minlength=32)
    assert counts.min() > 5
    for code in (0, 3, 12):
        np.testing.assert_array_equal(rows.codes[:, 0] > code, X[:, 0] > rows.edges[0, code])


def test_a_stump_is_the_best_stump():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, (80, 3)).astype(float)
    y = np.where(X[:, 1] + rng.normal(0, 2, 80) > 2.5, 1, -1).astype(np.int8)
    weights = rng.uniform(0.9, 1.1, 80)
    forest, margins = grown(X, y, n_trees=1, depth=1, weights=weights)

    def squared_error(values):
        return np.sum(weights * (y - values) ** 2)

    best = np.inf
    for f in range(3):
        for cut in np.arange(0.5, 5):
            right = X[:, f] > cut
            means = [np.average(y[side], weights=weights[side]) for side in (~right, right)]
            best = min(best, squared_error(np.where(right, means[1], means[0])))
    # The lightest tenth of the weight has no say, so the stump may be a little off.
    assert squared_error(margins) <= best * 1.05
    assert forest.features.shape == (1, 1)


def test_it_learns_and_the_margin_is_the_sum_of_leaves():
    X, codes, X_new, codes_new = learn_and_new()
    forest, margins = grown(X, codes[:, 0])
    functions = forest_margins([forest], 64, ONE_BIT, "")
    np.testing.assert_array_equal(functions.decision_function(X)[:, 0], margins)
    assert bit_accuracy(margins[:, None], codes[:, :1]) > 0.99
    assert bit_accuracy(functions.decision_function(X_new), codes_new[:, :1]) > 0.85
    for i in (0, 17):
        total = 0.0
        for features, thresholds, leaves in zip(*forest, strict=True):
            node = 0
            while node < len(features):
                node = 2 * node + (2 if X[i, features[node]] > thresholds[node] else 1)
            total += leaves[node - len(features)]
        assert total == margins[i]


def test_nothing_but_the_seed_matters(monkeypatch):
    X, codes, X_new, _ = learn_and_new()
    answers = []
    for threads, order in (("1", "C"), ("3", "F")):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", threads)
        forest, _ = grown(np.asarray(X, order=order), codes[:, 1], n_trees=10)
        functions = forest_margins([forest], 64, ONE_BIT, "")
        answers.append(functions.decision_function(np.asarray(X_new, order=order)))
    np.testing.assert_array_equal(answers[0], answers[1])
    parts = [functions.decision_function(X_new[a : a + 7]) for a in range(0, 700, 7)]
    np.testing.assert_array_equal(np.vstack(parts), answers[0])
    other, _ = grown(X, codes[:, 1], n_trees=10, seed=1)
    assert not np.array_equal(other.features, forest.features)


def test_heavy_samples_are_learned_first():
    X, codes, _, _ = learn_and_new()
    heavy = np.arange(300) < 30
    _, margins = grown(X, codes[:, 0], n_trees=2, depth=2, weights=np.where(heavy, 100.0, 1.0))
    right = (margins >= 0) == (codes[:, 0] > 0)
    assert right[heavy].mean() > right[~heavy].mean()


def test_state_goes_there_and_back():
    X, codes, X_new, _ = learn_and_new()
    functions = forest_margins([grown(X, codes[:, 0], n_trees=5)[0]], 64, ONE_BIT, "five trees")
    state = functions.state()
    assert all(isinstance(value, np.ndarray | str | int) for value in state.values())
    again = ForestMargins.from_state(state)
    np.testing.assert_array_equal(again.decision_function(X_new), functions.decision_function(X_new))


def test_constant_features_give_the_mean():
    y = np.array([1, 1, 1, -1], dtype=np.int8)
    forest, margins = grown(np.ones((4, 2)), y, n_trees=2, depth=2)
    np.testing.assert_allclose(margins, 0.5)
    np.testing.assert_allclose(forest_margins([forest], 2, ONE_BIT, "").decision_function(np.zeros((3, 2))), 0.5)
