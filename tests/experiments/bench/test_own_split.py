"""``hashlearn bench`` on a file with a test part of its own: its rows only ask."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from hashlearn.cli import main
from hashlearn.experiments.bench.results import read

N_CLASSES, A_CLASS, N_TEST = 4, 60, 15


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def save(path: Path, split: bool = True) -> None:
    """Test rows lie where the next class's other rows lie: only another test row near a query has its label."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(N_CLASSES), A_CLASS)
    is_test = np.tile(np.arange(A_CLASS) >= A_CLASS - N_TEST, N_CLASSES)
    order = rng.permutation(len(y))
    y, is_test = y[order], is_test[order]
    X = 10.0 * np.eye(N_CLASSES)[(y + is_test) % N_CLASSES] + 0.1 * rng.normal(size=(len(y), N_CLASSES))
    parts = {"split": np.where(is_test, "test", "train")} if split else {}
    np.savez(path, X=X, y=y, **parts)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HASHLEARN_DATA", str(tmp_path / "no data"))
    Path("files").mkdir()
    save(Path("files/mine.npz"))
    return tmp_path


BENCH = ("bench", "supervised", "--dataset", "files/mine.npz", "--methods", "SDH", "--bits", "8")


def test_test_rows_are_neither_searched_nor_learned_from(folder: Path) -> None:
    ended = invoke(*BENCH, "--draws", 2)
    assert ended.exit_code == 0, ended.output
    assert "180 in the database; 60 queries (canonical)" in ended.stdout
    for record in read("results").cells:
        assert record["protocol"]["queries"] == "canonical"
        assert record["protocol"]["n_queries"] == N_CLASSES * N_TEST
        assert record["protocol"]["n_database"] == N_CLASSES * (A_CLASS - N_TEST)
        assert record["metrics"]["map"] < 0.4  # the nearest rows of the database have another label


def test_without_split_queries_are_drawn(folder: Path) -> None:
    save(Path("files/mine.npz"), split=False)
    ended = invoke(*BENCH, "--draws", 1)
    assert ended.exit_code == 0, ended.output
    (record,) = read("results").cells
    assert record["protocol"]["queries"] == "10 per class"
    assert record["metrics"]["map"] > 0.4  # rows near a query may have its label


def test_results_with_other_queries_are_not_filled_up(folder: Path) -> None:
    save(Path("files/mine.npz"), split=False)
    assert invoke(*BENCH, "--draws", 1).exit_code == 0
    save(Path("files/mine.npz"))
    ended = invoke(*BENCH, "--draws", 2)
    assert ended.exit_code == 1
    assert "its stored results have protocol '120 per class', now they are 'own'" in ended.output
    assert len(read("results").records) == 1


def test_the_report_s_command_runs(folder: Path) -> None:
    assert invoke(*BENCH, "--draws", 1).exit_code == 0
    assert invoke("report", "results", "-o", "page.html").exit_code == 0
    (block,) = re.findall(r'<pre data-part="commands">(.*?)</pre>', Path("page.html").read_text("utf-8"))
    command = re.findall("<code>(.*?)</code>", block)[0]
    assert "--dataset files/mine.npz" in command
    again = invoke(*shlex.split(command)[1:], "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["missing"] == []
