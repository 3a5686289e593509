"""``hashlearn tune``: what was tried is told, the best is written whole or not at all."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from hashlearn import bqp, load
from hashlearn.cli import tune as module
from hashlearn.core.progress_bar import ProgressBar
from hashlearn.hash_functions import RBFSVM, KernelRidge, LinearSVM
from hashlearn.hashers import TwoStepHasher, tune, tuning
from hashlearn.targets import LabelsAndNeighbors, Neighbors
from tests.cli.files import N, X, Y, answer, invoke, refused, write_parquet

CHOICES: dict[str, tuple[Any, ...]] = {"hash_function": (LinearSVM(C=0.5), RBFSVM()), "n_sweeps": (1,)}
LABELLED = ["tune", "X.npy", "--labels", "y.npy", "-o", "new", "--bits", 6]


@dataclass(frozen=True)
class Interrupted:
    """The user presses Ctrl-C in the middle of a bit."""

    name: ClassVar[str] = "interrupted"

    def run(self, A: Any, run: Any, rng: Any, x0: Any) -> bqp.Status:
        raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def few_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_default_choices", lambda y: CHOICES)


def scores(monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    """Trials are not run; these are their scores."""
    left = iter(values)
    monkeypatch.setattr(tuning._Split, "score", lambda self, hasher: next(left))


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
    assert (found["metric"], found["labels"]) == ("recall of float neighbours", False)
    assert answer("encode", "new", "Q.npy", "-o", "codes.npy")["n_bits"] == 4


def test_the_table_has_every_trial_and_marks_the_best(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores(monkeypatch, 0.25, 0.75, 0.5, 0.625)
    result = invoke(*LABELLED)
    assert (result.exit_code, result.stderr) == (0, "")
    heading, _, *rows = result.stdout.partition("\n\n")[0].splitlines()
    assert heading.split() == ["changes", "from", "the", "defaults", "score", "seconds"]
    assert [row.split("  ")[0] for row in rows] == [
        "none",
        "hash_function=LinearSVM(C=0.5)",
        "hash_function=RBFSVM()",
        "hash_function=LinearSVM(C=0.5), n_sweeps=1",
    ]
    assert [float(row.split()[-2 - row.endswith("best")]) for row in rows] == [0.25, 0.75, 0.5, 0.625]
    assert [row.endswith("  best") for row in rows] == [False, True, False, False]
    assert "mean average precision, 20 % of the rows held out" in result.stdout
    assert "stopped" not in result.stdout
    assert load("new").hash_function == LinearSVM(C=0.5)


def test_a_budget_that_ends_the_search_is_told(folder: Path) -> None:
    result = invoke(*LABELLED, "--seconds", 0.001)
    assert result.exit_code == 0
    assert "stopped       by the budget of 0.001 seconds" in result.stdout
    found = answer(*LABELLED, "--seconds", 0.001)
    assert (found["stopped"], found["best"]) == (True, 0)
    assert [trial["changes"] for trial in found["trials"]] == [{}]


def test_progress_is_told_to_the_bar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores(monkeypatch, 0.25, 0.75, 0.5, 0.625)
    told = []
    monkeypatch.setattr(ProgressBar, "begin", lambda self, what: told.append(what))
    answer(*LABELLED)
    assert told == [
        "reading",
        "trying the defaults",
        "1 tried, best score 0.2500",
        "2 tried, best score 0.7500",
        "3 tried, best score 0.7500",
        "4 tried, best score 0.7500",
        "writing",
    ]


def test_warnings_of_a_trial_stay_with_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = TwoStepHasher.fit

    def warns(self: Any, X: Any, y: Any = None) -> Any:
        warnings.warn(f"learned from {len(X)} rows by {self.hash_function!r:.9}", stacklevel=1)
        return real(self, X, y)

    monkeypatch.setattr(TwoStepHasher, "fit", warns)
    monkeypatch.setitem(CHOICES, "hash_function", (LinearSVM(),))
    monkeypatch.setitem(CHOICES, "n_sweeps", ())
    result = invoke(*LABELLED, "--json")
    found = json.loads(result.stdout)
    assert [trial["notes"] for trial in found["trials"]] == [
        ["learned from 240 rows by 'auto'"],
        ["learned from 240 rows by LinearSVM"],
    ]
    (note,) = found["notes"]
    assert note.startswith("learned from 300 rows by")
    assert result.stderr == f"Note: {note}\n"


def test_ctrl_c_leaves_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bqp.METHODS, "interrupted", Interrupted)
    monkeypatch.setattr(tuning, "_default_choices", lambda y: {"solver": ("interrupted",)})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for output in ("model", "new"):
        result = invoke("tune", "X.npy", "--labels", "y.npy", "-o", output, "--bits", 6)
        assert (result.exit_code, result.stdout) == (130, "")
        assert result.stderr == "Interrupted before there was an answer.\n"
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_names_of_columns_are_kept(folder: Path) -> None:
    write_parquet(folder)
    answer("tune", "columns.parquet", "--labels", "y.npy", "-o", "new", "--bits", 6, "--seconds", 0.001)
    assert list(load("new").feature_names_in_) == [f"pixel {i}" for i in range(64)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bits", "0"], "--bits: n_bits must be a positive integer, got 0"),
        (["--bits", "241"], "--bits: n_bits=241 needs at least as many samples"),
        (["--seconds", "0"], "'--seconds': 0.0 is not in the range x>0.0"),
        (["--seconds", "nan"], "--seconds: seconds must be a positive number, got nan"),
        (["--held-out", "1"], "'--held-out': 1.0 is not in the range 0.0<x<1.0"),
        (["--held-out", "nan"], "--held-out: held_out must be a share between 0 and 1, got nan"),
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


def test_bad_features(folder: Path) -> None:
    rows = X[:N].copy()
    rows[17, 5] = np.nan
    np.save("nan.npy", rows)
    refused("tune", "nan.npy", "-o", "new", words="nan.npy: holds nan at row 17, column 5")
    refused("tune", "nowhere.npy", "-o", "new", words="nowhere.npy: there is no such file")
    refused("tune", "X.npy", words="Missing option '--output'")


def test_objects_are_shown_without_their_defaults() -> None:
    assert module._plain(KernelRidge(alpha=0.3, gamma="scale")) == "KernelRidge(alpha=0.3, gamma='scale')"
    nested = LabelsAndNeighbors(neighbors=Neighbors(metric="euclidean"), labels_weight=0.875)
    assert module._plain(nested) == "LabelsAndNeighbors(neighbors=Neighbors(metric='euclidean'), labels_weight=0.875)"
    assert module._plain(np.ones(1)) == "array([1.])"
