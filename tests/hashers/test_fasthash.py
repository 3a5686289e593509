"""FastHash: its loss falls, its groups stand for their samples exactly, its trees predict the bits."""

import numpy as np
import pytest

from hashlearn import bqp
from hashlearn.core.labels import label_indicators
from hashlearn.hashers.baselines.fasthash import CodeGroups, FastHash
from tests.hashers import supervised_laws as laws
from tests.hashers.supervised_laws import TRAIN, X, Y


def make(**parameters):
    return FastHash(**{"n_bits": 5, "n_trees": 8, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return make(n_bits=12, n_trees=30).fit(X[TRAIN], Y[TRAIN])


def pair_loss(codes, y):
    """By its definition, for all pairs."""
    n_bits = codes.shape[1]
    distance = 0.5 * (n_bits - codes.astype(int) @ codes.T.astype(int))
    same = y[:, None] == y
    return np.where(same, distance**2, np.maximum(0.5 * n_bits - distance, 0.0) ** 2)


def test_the_training_loss_falls(fitted):
    losses = [pair_loss(fitted.codes_[:, :b], Y[TRAIN]).mean() / b**2 for b in range(1, 13)]
    assert losses[-1] < 0.5 * losses[0]
    assert np.all(np.diff(losses[::3]) < 0)


def test_it_learns_and_gives_its_own_outputs_as_training_codes(fitted):
    laws.check_training_codes(fitted)
    assert laws.mean_average_precision(fitted) > 0.7


def groups_after(rng, n_bits, n=60):
    y = rng.integers(0, 4, n)
    codes = rng.choice(np.array([-1, 1], dtype=np.int8), (n, n_bits))
    codes[1::2] = codes[::2]  # so that some samples are alike
    y[1::2] = y[::2]
    groups = CodeGroups(label_indicators(y), max_groups=1000)
    for bit in codes.T:
        groups.append(bit)
    return groups, codes, y


@pytest.mark.parametrize("n_bits", [0, 1, 4])
def test_values_of_the_group_problem_are_changes_of_the_loss(n_bits):
    rng = np.random.default_rng(n_bits)
    groups, codes, y = groups_after(rng, n_bits)
    sample = groups.draw(rng)
    A = groups.problem(sample)
    size = groups.counts.mean()
    values, losses = [], []
    for _ in range(3):
        x = rng.choice([-1.0, 1.0], len(sample))
        longer = np.column_stack([codes, x[groups.member].astype(np.int8)])
        values.append(A.value(x) * size**2)
        losses.append(2.0 * pair_loss(longer, y).sum())
    np.testing.assert_allclose(np.diff(values), np.diff(losses))


def test_costs_are_what_a_single_wrong_bit_adds():
    rng = np.random.default_rng(5)
    groups, codes, y = groups_after(rng, 3)
    sample = groups.draw(rng)
    x = bqp.solve(groups.problem(sample), "local_search", random_state=0).x.astype(float)
    z, costs = groups.complete(sample, x)
    right = pair_loss(np.column_stack([codes, z]), y).sum()
    for i in (0, 7, 30):
        wrong = z.copy()
        wrong[i] *= -1
        assert 2.0 * costs[i] == pytest.approx(pair_loss(np.column_stack([codes, wrong]), y).sum() - right)


def test_with_fewer_groups_than_there_are_the_rest_follows():
    few = make(n_bits=10, max_groups=12, n_trees=15).fit(X[TRAIN], Y[TRAIN])
    assert laws.mean_average_precision(few) > 0.5


def test_two_classes_leave_constant_bits():
    rows = Y < 2
    hasher = make(n_bits=4, n_trees=40).fit(X[rows], Y[rows])
    assert hasher.hash_functions_.bits.n_distinct < 4
    np.testing.assert_array_equal(hasher.transform(X[rows]) > 0, hasher.codes_ > 0)


def test_progress_is_told():
    heard = []
    make(progress=lambda p: heard.append((p.stage, p.done, p.total))).fit(X[TRAIN], Y[TRAIN])
    assert heard == [("bits", b, 5) for b in range(1, 6)]


def test_bad_parameters_are_named():
    laws.check_bad_parameters_are_named(make, n_trees=0, max_depth=0, n_sweeps=0, max_groups=0)
