"""Tuning: what is tried, what is kept, and that the budget is."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hashlearn.hashers import tuning
from hashlearn.hashers.tuning import tune

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]


def test_the_best_trial_is_fitted_on_everything():
    seen = []
    found = tune(
        X,
        y,
        n_bits=6,
        choices={"hash_function": ("linear_svm", "kernel_ridge")},
        random_state=0,
        progress=lambda p: seen.append(p.trial),
    )
    assert found.trials == tuple(seen)
    assert [trial.changes.get("hash_function") for trial in found.trials] == [None, "linear_svm", "kernel_ridge"]
    assert found.best.score == max(trial.score for trial in found.trials)
    assert len(found.hasher.codes_) == len(X)
    assert found.hasher.get_params()["hash_function"] == found.best.changes.get("hash_function", "auto")
    assert "mean average precision" in str(found)
    assert str(found).count("<- best") == 1
    assert not found.stopped


def test_a_later_choice_builds_on_the_best_so_far(monkeypatch):
    scores = iter([0.1, 0.5, 0.2, 0.6])
    monkeypatch.setattr(tuning._Split, "score", lambda self, hasher: next(scores))
    found = tune(X, y, n_bits=4, choices={"spread": (False,), "n_sweeps": (1, 2)}, random_state=0)
    assert [trial.changes for trial in found.trials] == [
        {},
        {"spread": False},
        {"spread": False, "n_sweeps": 1},
        {"spread": False, "n_sweeps": 2},
    ]
    assert found.best.changes == {"spread": False, "n_sweeps": 2}


def test_without_labels_float_neighbours_are_the_judge():
    found = tune(X, n_bits=8, choices={"target": ("distance",)}, random_state=0)
    assert found.metric == "recall of float neighbours"
    assert all(0.0 < trial.score < 1.0 for trial in found.trials)
    again = tune(X, n_bits=8, choices={"target": ("distance",)}, random_state=0)
    assert [t.score for t in again.trials] == [t.score for t in found.trials]


def test_the_budget_ends_the_search_and_is_told():
    found = tune(X, y, n_bits=4, seconds=1e-6, choices={"n_sweeps": (1, 2)}, random_state=0)
    assert len(found.trials) == 1
    assert found.stopped
    assert "time budget" in str(found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seconds": 0}, "seconds must be a positive number"),
        ({"held_out": 1.0}, "held_out must be a share"),
        ({"held_out": 0.001}, "too few to judge by"),
        ({"choices": {"nonsense": (1,)}}, "parameters of TwoStepHasher"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        tune(X, y, n_bits=4, **arguments)


def test_labels_of_another_length():
    with pytest.raises(ValueError, match="as many rows"):
        tune(X, np.zeros(3), n_bits=4)


def test_indicators_of_several_labels_are_tuned_too():
    indicators = np.column_stack([y % 2, y > 4]).astype(int)
    found = tune(X[:150], indicators[:150], n_bits=4, seconds=60.0, random_state=0)
    assert len(found.trials) > 1
    assert found.hasher.encode(X[:3]).shape == (3, 1)


def test_single_flips_are_tried_without_labels_only():
    assert tuning._default_choices(None)["solver"] == ("sweeps",)
    assert "solver" not in tuning._default_choices(y)
