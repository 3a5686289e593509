"""Classes from outside the package through ``hashlearn bench`` and ``report``: what is run, stored and refused."""

from __future__ import annotations

import csv
import html
import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from hashlearn.cli import main
from hashlearn.experiments.bench.methods import UNSUPERVISED
from hashlearn.experiments.bench.results import read

N_TRAIN, N_VAL, N_TEST, N_CLASSES, N_FEATURES = 150, 30, 40, 4, 8
PAGE = (Path(__file__).parents[3] / "docs" / "own-methods.md").read_text("utf-8")
# A whole hasher in 30 lines.
MY_HASHER = re.findall(r"^```python\n# my_module.py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An own data set with a published split, in a file whose name needs quotes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HASHLEARN_DATA", str(tmp_path / "no data"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file is changed within a second here
    modules = set(sys.modules)
    rng = np.random.default_rng(0)
    n = N_TRAIN + N_VAL + N_TEST
    y = rng.integers(N_CLASSES, size=n)
    X = 3.0 * rng.normal(size=(N_CLASSES, N_FEATURES))[y] + rng.normal(size=(n, N_FEATURES))
    split = rng.permutation(np.repeat(["train", "val", "test"], [N_TRAIN, N_VAL, N_TEST]))
    Path("my, data").mkdir()
    np.savez("my, data/it's mine.npz", X=X, y=y, split=split)
    Path("own_of_test.py").write_text(MY_HASHER)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if name.startswith(("own_of", "others_of", "odd_of", "my_module")):
            del sys.modules[name]


FILE = "my, data/it's mine.npz"
MINE = "own_of_test:MyHasher"
BENCH = ("bench", "supervised", "--dataset", FILE, "--methods", f"{MINE},LSH,SDH", "--bits", "4,8", "--draws", 1)
OPTIONS = ("--train-per-class", 20, "--queries", 30, "--metric", "map@50", "--metric", "p@10", "--metric", "map")


def test_a_hasher_of_30_lines_goes_through_bench_and_report_on_a_published_split(folder: Path) -> None:
    assert MY_HASHER.count("\n") <= 30
    ended = invoke(*BENCH, "--json")
    assert ended.exit_code == 0, ended.output
    told = json.loads(ended.stdout)
    drawn = told["protocols"]["it's mine"]
    assert (drawn["name"], drawn["split"]) == ("own", "own")
    counts = {key: drawn[key] for key in ("n_train", "n_database", "n_queries", "n_unused")}
    assert counts == {"n_train": N_TRAIN, "n_database": N_TRAIN, "n_queries": N_TEST, "n_unused": N_VAL}
    mine = told["values"]["it's mine"]["map"][MINE]["8"]["values"]
    assert mine[0] > told["values"]["it's mine"]["map"]["LSH"]["8"]["values"][0] > 25.0
    records = {(cell.method, cell.n_bits): record for cell, record in read("results").records.items()}
    assert {record["configuration"]["setting"] for key, record in records.items() if key[0] == "LSH"} == {UNSUPERVISED}
    source = records[MINE, 8]["configuration"]["source"]
    assert (source["module"], source["file"], len(source["sha256"])) == ("own_of_test", "own_of_test.py", 64)
    assert all(record["protocol"]["n_queries"] == N_TEST for record in records.values())

    assert invoke("report", "results", "-o", "page.html", "--csv", "t.csv").exit_code == 0
    page = Path("page.html").read_text("utf-8")
    assert "<h1>Learned binary codes, measured</h1>" in page  # the paper has none of these cells
    assert "Learned without labels: LSH." in page
    rows = list(csv.DictReader(Path("t.csv").read_text("utf-8").splitlines()))
    by_key = {(row["method"], row["bits"], row["metric"]): float(row["mean"]) for row in rows}
    assert by_key[MINE, "8", "map"] == pytest.approx(mine[0], abs=1e-4)
    assert len(by_key) == 3 * 2 * 2


def test_the_commands_of_the_page_run(folder: Path) -> None:
    shutil.copy(FILE, "mine.npz")
    np.save("rows.npy", np.random.default_rng(2).normal(size=(300, N_FEATURES)))
    Path("my_module.py").write_text(MY_HASHER)
    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]
    assert len(lines) == 3
    for line in lines:
        ended = invoke(*shlex.split(line)[1:])
        notes = [note for note in ended.stderr.splitlines() if " cells, " not in note]  # a line for each cell
        assert (ended.exit_code, notes) == (0, []), line
    assert "my_module:MyHasher" in Path("table.csv").read_text("utf-8")
    assert len(read("by-neighbors").records) == 2


def test_the_printed_command_runs_as_it_stands_and_measures_the_same(folder: Path) -> None:
    assert invoke(*BENCH, *OPTIONS).exit_code == 0
    assert invoke("report", "results", "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text("utf-8")
    (block,) = re.findall(r'<pre data-part="commands">(.*?)</pre>', page)
    command, _ = map(html.unescape, re.findall("<code>(.*?)</code>", block))
    before = dict(read("results").records)
    Path("results").rename("first")
    again = invoke(*shlex.split(command)[1:], "--json")
    assert again.exit_code == 0, again.output
    after = read("results")
    assert after.missing == ()
    assert {cell: record["digest"] for cell, record in after.records.items()} == {
        cell: record["digest"] for cell, record in before.items()
    }
    assert list(json.loads(again.stdout)["values"]["it's mine"]) == ["map@50", "p@10", "map"]
    drawn = next(iter(after.records.values()))["protocol"]
    assert (drawn["n_train"], drawn["n_queries"], drawn["n_database"]) == (20 * N_CLASSES, 30, N_TRAIN)
    assert drawn["asked"] == {"train_per_class": 20, "queries": 30}


def _change(source: str) -> None:
    """A new version of the class, as a new process would import it."""
    Path("own_of_test.py").write_text(source)
    del sys.modules["own_of_test"]


def test_a_changed_class_is_run_again_and_nothing_else(folder: Path) -> None:
    assert "6 cell(s) run" in invoke(*BENCH).output
    assert "0 cell(s) run, 6 stored before" in invoke(*BENCH).output
    _change(MY_HASHER.replace("range(20)", "range(30)"))
    ended = invoke(*BENCH)
    assert "2 cell(s) run, 4 stored before" in ended.output
    _change(MY_HASHER.replace("return self\n", "raise KeyError('no')\n"))
    ended = invoke(*BENCH)
    assert ended.exit_code == 1
    assert {cell.method for cell in read("results").records} == {"LSH", "SDH"}  # no result of other code is shown
    (trace,) = Path("results/supervised/it's mine/own_of_test.MyHasher").glob("4-0-*.error.json")
    assert f"Traceback: {trace}" in ended.output
    assert "in fit" in json.loads(trace.read_text("utf-8"))["traceback"]
    assert invoke("report", "results", "-o", "page.html").exit_code == 0
    page = Path("page.html").read_text("utf-8")
    assert "KeyError" in page
    assert str(folder) not in page
    assert "2 cells missing" in page


def test_cells_that_lack_a_metric_are_run_again_with_it(folder: Path) -> None:
    quick = (*BENCH[:4], "--methods", "LSH", "--bits", 4, "--draws", 1)
    assert invoke(*quick).exit_code == 0
    ended = invoke(*quick, "--metric", "p@10")
    assert "1 cell(s) run, 0 stored before" in ended.output
    assert "precision of the first 10 in %" in ended.output
    assert "0 cell(s) run, 1 stored before" in invoke(*quick, "--metric", "p@10", "--metric", "map").output
    assert "0 cell(s) run, 1 stored before" in invoke(*quick).output
    assert "1 cell(s) run, 0 stored before" in invoke(*quick, "--protocol", "120").output
    too_many = invoke(*quick, "--metric", "p@1000", "--out", "other")
    assert "metric 'p@1000' needs 1,000 rows in the database, got 150" in too_many.output


OTHERS = """
import numpy as np
from hashlearn.hashers import BaseHasher
class Reals(BaseHasher):
    def fit(self, X): return self
    def decision_function(self, X): return X[:, : self.n_bits]
class Narrow(Reals):
    def decision_function(self, X): return X[:, :1]
class Nan(Reals):
    def decision_function(self, X): return np.full((len(X), self.n_bits), np.nan)
"""


def test_margins_that_are_none_fail_their_cell_with_the_reason(folder: Path) -> None:
    Path("others_of_test.py").write_text(OTHERS)
    names = "others_of_test:Reals,others_of_test:Narrow,others_of_test:Nan"
    ended = invoke("bench", "unsupervised", "--dataset", FILE, "--methods", names, "--bits", 4, "--draws", 1)
    assert ended.exit_code == 1
    assert {cell.method for cell in read("results").records} == {"others_of_test:Reals"}
    assert "decision_function of Narrow must return margins of shape (n_samples, 4)" in ended.output
    assert "decision_function of Nan returned NaN or infinity" in ended.output


BASE = "from hashlearn.hashers import BaseHasher\nclass My(BaseHasher):\n"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("class Other: pass", "odd_of_test.py has no class 'My'"),
        ("My = 3", "odd_of_test.py has no class 'My'"),
        ("class My:\n def fit(self, X): pass", "the class must be a hashlearn.hashers.BaseHasher"),
        (f"{BASE} def decision_function(self, X): pass", "the class has no fit"),
        (
            f"{BASE} def __init__(self, n_bits, depth): pass\n def fit(self, X): pass",
            "with n_bits and random_state alone",
        ),
        (
            "import no_such_package_at_all",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_package_at_all'",
        ),
        ("class My(:", "cannot be imported: SyntaxError"),
        ("1 / 0", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_classes_that_do_not_fit_are_refused_in_one_line(folder: Path, source: str, said: str) -> None:
    Path("odd_of_test.py").write_text(source)
    ended = invoke("bench", "supervised", "--dataset", FILE, "--methods", "odd_of_test:My")
    assert (ended.exit_code, ended.stderr.count("\n")) == (2, 1)
    assert said in ended.stderr
    assert not Path("results").exists()
