"""Tuning: which configurations are tried, which one is the best, and that time ends the search."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn import TwoStepHasher
from hashlearn.hashers import tune

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]


def test_the_best_trial_is_fitted_on_everything():
    told = []
    grid = [{}, {"hash_function": ("linear_svm", "kernel_ridge")}]
    tuned = tune(X, y, n_bits=6, grid=grid, random_state=0, progress=lambda p: told.append((p.done, p.total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [trial.changes.get("hash_function") for trial in tuned.trials] == [None, "linear_svm", "kernel_ridge"]
    assert tuned.best.score == max(trial.score for trial in tuned.trials)
    assert len(tuned.hasher.codes_) == len(X)
    assert tuned.hasher.hash_function == tuned.best.changes.get("hash_function", "auto")
    assert not tuned.stopped


def test_the_score_decides_and_the_earliest_of_equals_wins(monkeypatch):
    scores = iter([0.1, 0.5, 0.2, 0.5])
    monkeypatch.setattr(TwoStepHasher, "score", lambda self, X, y=None: next(scores))
    tuned = tune(X, y, n_bits=4, grid={"spread": (True, False), "n_sweeps": (1, 2)}, random_state=0)
    assert tuned.best is tuned.trials[1]
    assert {name: tuned.hasher.get_params()[name] for name in tuned.best.changes} == tuned.best.changes


def test_the_same_seed_tries_the_same_without_labels():
    first, again = (tune(X, n_bits=8, grid={"target": ("distance",)}, random_state=0) for _ in range(2))
    assert [trial.score for trial in again.trials] == [trial.score for trial in first.trials]
    assert all(-1.0 < trial.score < 0.0 for trial in first.trials)


def test_time_ends_the_search():
    tuned = tune(X, y, n_bits=4, seconds=1e-6, random_state=0)
    assert [trial.changes for trial in tuned.trials] == [{}]
    assert tuned.stopped


def test_indicators_of_several_labels():
    indicators = np.column_stack([y % 2, y > 4]).astype(int)
    tuned = tune(X[:150], indicators[:150], n_bits=4, random_state=0)
    assert len(tuned.trials) > 1
    assert tuned.hasher.encode(X[:3]).shape == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seconds": 0}, "seconds must be a positive number"),
        ({"held_out": 1.0}, "held_out must be"),
        ({"held_out": 0.001}, "too few to judge by"),
        ({"grid": {"nonsense": (1,)}}, "Invalid parameter 'nonsense' for estimator TwoStepHasher"),
        ({"y": np.zeros(3)}, "inconsistent numbers of samples"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        tune(X, **{"y": y, "n_bits": 4, **arguments})
