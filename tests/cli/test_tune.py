"""``hashlearn tune``: a table of the trials; the best is written whole or not at all."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from hashlearn import bqp, load
from hashlearn.hashers import TwoStepHasher, tune, tuning
from tests.cli.files import N, X, Y, answer, invoke, refused

LABELLED = ["tune", "X.npy", "--labels", "y.npy", "-o", "new", "--bits", 6]


@dataclass(frozen=True)
class Interrupted(bqp.Solver):
    """The user presses Ctrl-C in the middle of a bit."""

    name: ClassVar[str] = "interrupted"

    def solve(self, A: Any, state: Any, rng: Any, x0: Any) -> bqp.Status:
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def few_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "OF_HASH_FUNCTIONS", {"hash_function": ("linear_svm", "linear_ridge")})


def scores(monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    """The scores of the trials."""
    left = iter(values)
    monkeypatch.setattr(TwoStepHasher, "score", lambda self, X, y=None: next(left))


def test_the_command_is_the_function(folder: Path) -> None:
    found = answer(*LABELLED, "--seed", 3, "--held-out", 0.25)
    expected = tune(X[:N], Y[:N], n_bits=6, held_out=0.25, random_state=3)
    assert [trial["score"] for trial in found["trials"]] == [trial.score for trial in expected.trials]
    assert found["trials"][found["best"]]["score"] == expected.best.score
    assert found["metric"] == "mean average precision"
    assert (found["n_bits"], found["n_samples"], found["n_features"], found["labels"]) == (6, N, 64, True)
    assert (found["stopped"], found["notes"], found["seed"], found["held_out"]) == (False, [], 3, 0.25)
    assert found["bytes"] == (folder / "new").stat().st_size
    model = load("new")
    assert model.get_params() == expected.hasher.get_params()
    assert len(model.codes_) == N
    np.testing.assert_array_equal(model.encode(X), expected.hasher.encode(X))


def test_without_labels(folder: Path) -> None:
    found = answer("tune", "both.npz::X", "-o", "new", "--bits", 4, "--seconds", 0.001)
    assert (found["metric"], found["labels"]) == ("minus the squared error of cosines", False)
    assert answer("encode", "new", "Q.npy", "-o", "codes.npy")["n_bits"] == 4


def test_the_table_has_every_trial_and_marks_the_best(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores(monkeypatch, 0.25, 0.75, 0.5)
    result = invoke(*LABELLED)
    assert (result.exit_code, result.stderr) == (0, "")
    heading, _, *rows = result.stdout.partition("\n\n")[0].splitlines()
    assert heading.split() == ["changes", "from", "the", "defaults", "score", "seconds"]
    assert [row.split()[0] for row in rows] == ["none", "hash_function=linear_svm", "hash_function=linear_ridge"]
    assert [row.split()[1] for row in rows] == ["0.2500", "0.7500", "0.5000"]
    assert [row.endswith("  best") for row in rows] == [False, True, False]
    assert "mean average precision, 20 % of the rows held out" in result.stdout
    assert "stopped" not in result.stdout
    assert load("new").hash_function == "linear_svm"


def test_a_budget_that_ends_the_search_is_told(folder: Path) -> None:
    result = invoke(*LABELLED, "--seconds", 0.001)
    assert result.exit_code == 0
    assert "stopped       after 0.001 seconds" in result.stdout
    found = answer(*LABELLED, "--seconds", 0.001)
    assert (found["stopped"], found["best"]) == (True, 0)
    assert [trial["changes"] for trial in found["trials"]] == [{}]


def test_warnings_of_a_trial_are_not_about_the_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TwoStepHasher.fit

    def warns(self: Any, X: Any, y: Any = None) -> Any:
        warnings.warn(f"learned from {len(X)} rows", stacklevel=1)
        return real(self, X, y)

    monkeypatch.setattr(TwoStepHasher, "fit", warns)
    result = invoke(*LABELLED, "--json")
    assert json.loads(result.stdout)["notes"] == ["learned from 300 rows"]
    assert result.stderr == "Note: learned from 300 rows\n"


def test_ctrl_c_leaves_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bqp.METHODS, "interrupted", Interrupted)
    monkeypatch.setattr(tuning, "OF_HASH_FUNCTIONS", {"solver": ("interrupted",)})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for output in ("model", "new"):
        result = invoke("tune", "X.npy", "--labels", "y.npy", "-o", output, "--bits", 6)
        assert (result.exit_code, result.stdout) == (130, "")
        assert result.stderr == "Interrupted before there was an answer.\n"
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bits", "0"], "--bits: n_bits must be an integer from 1 to 4096, got 0"),
        (["--bits", "241"], "--bits: n_bits=241 needs at least as many samples"),
        (["--seconds", "0"], "'--seconds': 0.0 is not in the range x>0.0"),
        (["--seconds", "nan"], "--seconds: seconds must be a positive number, got nan"),
        (["--held-out", "1"], "'--held-out': 1.0 is not in the range 0.0<x<1.0"),
        (["--held-out", "nan"], "--held-out: held_out must be"),
        (["--held-out", "0.01"], "--held-out: held_out=0.01 of 300 samples are too few to judge by"),
        (["--labels", "yq.npy"], "--labels: yq.npy: has 40 label(s), X.npy has 300 row(s)"),
        (["--labels", "one_class.npy"], "--labels: y holds only one class"),
        (["--labels", "nowhere.npy"], "--labels: nowhere.npy: there is no such file"),
        (["--seed", "-1"], "--seed"),
        (["--output", "nowhere/new"], "--output nowhere/new: its folder does not exist"),
        (["--output", "X.npy"], "--output X.npy: is an input of this command"),
    ],
)
def test_bad_options(folder: Path, options: list[str], words: str) -> None:
    np.save("one_class.npy", np.zeros(N, int))
    output = [] if "--output" in options else ["-o", "new"]
    refused("tune", "X.npy", "--bits", 6, *output, *options, words=words)
    assert not (folder / "new").exists()
