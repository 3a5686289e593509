"""``hashlearn bench``: what it prints, what it refuses, how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hashlearn.cli.experiments import bench_command
from hashlearn.experiments import datasets
from hashlearn.experiments.bench.results import read
from tests.experiments.bench import fakes


@pytest.fixture(autouse=True)
def _fake_data(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "load", fakes.load)
    monkeypatch.setenv("HASHLEARN_DATA", str(tmp_path))


def bench(*arguments, out):
    return CliRunner().invoke(bench_command, [*arguments, "--out", str(out)])


def test_a_table_is_run_shown_and_stored(tmp_path):
    ended = bench("inference", "--dataset", "digits", "--methods", "quick", "--bits", "8", out=tmp_path)
    assert ended.exit_code == 0, ended.output
    assert "digits (pixels): precision within 2 bits in %, mean ± standard deviation of 3 draws" in ended.output
    assert "\nQuick  " in ended.output
    assert "3 cell(s) run, 0 stored before" in ended.output
    assert len(read(tmp_path).records) == 3


def test_a_second_run_has_nothing_to_do_and_shows_the_same(tmp_path):
    options = ("inference", "--dataset", "digits", "--methods", "Quick", "--bits", "4,8", "--draws", "1")
    first, second = bench(*options, out=tmp_path), bench(*options, out=tmp_path)
    assert "0 cell(s) run, 2 stored before" in second.output
    assert first.stdout.rpartition("\n\n")[0] == second.stdout.rpartition("\n\n")[0]


def test_a_line_for_each_cell_that_ends_where_nobody_watches(tmp_path, monkeypatch):
    options = ("inference", "--dataset", "digits", "--methods", "Quick,Broken", "--bits", "4,8", "--draws", "1")
    first = bench(*options, out=tmp_path / "a").stderr.splitlines()
    assert first[0].startswith("1/4 cells, digits, ")
    assert [line.partition(", ")[0] for line in first] == ["1/4 cells", "2/4 cells", "3/4 cells", "4/4 cells"]
    assert {line.split(", ")[2] for line in first} == {"Quick", "Broken"}
    assert bench(*options, "--quiet", out=tmp_path / "b").stderr == ""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: True)
    assert "cells, " not in bench(*options, out=tmp_path / "c").stderr


def test_failed_cells_are_listed_and_end_with_1(tmp_path):
    options = ("inference", "--dataset", "digits", "--methods", "Broken", "--bits", "3,4", "--draws", "2")
    ended = bench(*options, out=tmp_path)
    assert ended.exit_code == 1
    cells = "2 of 4 cells: digits, Broken, 3 bits, draw 0; digits, Broken, 3 bits, draw 1"
    assert f"Failed: RuntimeError: odd bits are beyond me. {cells}" in ended.output
    assert "2 cell(s) run" in ended.output


def test_ctrl_c_shows_what_there_is_and_ends_with_130(tmp_path):
    options = ("inference", "--dataset", "digits", "--methods", "Quick,Interrupted", "--bits", "8", "--draws", "1")
    ended = bench(*options, out=tmp_path)
    assert ended.exit_code == 130
    assert "Not run yet. 1 of 2 cells: digits, Interrupted, 8 bits, draw 0" in ended.output
    assert "goes on where this one stopped" in ended.output
    assert [cell.method for cell in read(tmp_path).records] == ["Quick"]


def test_several_data_sets_by_comma_or_again(tmp_path, monkeypatch):
    asked = []

    def load(name, **options):
        asked.append(name)
        raise datasets.MissingDataError(f"{name} is not there")

    monkeypatch.setattr(datasets, "load", load)
    ended = bench("knn", "--dataset", "mnist,cifar10", "--dataset", "digits", out=tmp_path)
    assert asked == ["mnist", "cifar10", "digits"]
    assert ended.exit_code == 2
    assert "cifar10: cifar10 is not there" in ended.output


def test_a_file_of_that_name_in_the_current_folder_is_named(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()  # not the data folder
    monkeypatch.chdir(tmp_path / "here")
    Path("20news.npz").touch()
    ended = bench("inference", "--dataset", "20news", out=tmp_path / "results")
    assert ended.exit_code == 2
    assert "unknown data set '20news'; did you mean the file '20news.npz'?" in ended.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["unsupervized"], "unknown table 'unsupervized'; did you mean 'unsupervised'?"),
        (["inference", "--methods", "SDX"], "unknown method 'SDX'; did you mean 'SDR'?"),
        (["inference", "--dataset", "cifar"], "unknown data set 'cifar'; did you mean 'cifar10'?"),
        (["inference", "--bits", "8,x"], "--bits must be whole numbers with commas between them, got '8,x'"),
        (["inference", "--bits", "0"], "bits must be code lengths from 1"),
        (["inference", "--methods", "SDR,,AL"], "--methods must be names with commas between them"),
        (["unsupervised", "--methods", "SDH"], "method SDH is not unsupervised"),
        (["inference", "--protocol", "12"], "unknown protocol '12'; did you mean '120'?"),
        (["inference", "--train-per-class", "few"], "train_per_class must be a positive integer or 'all', got 'few'"),
        (["inference", "--train-per-class", "0"], "train_per_class must be a positive integer or 'all', got 0"),
        (["inference", "--metric", "map@0"], "metric must be map, map@K, p@N (K and N positive)"),
        (["inference", "--methods", "no_such_module_of_mine:My"], "there is no module 'no_such_module_of_mine'"),
        (["inference", "--methods", "json:My"], "json:My: __init__.py has no class 'My'"),
        (["inference", "--methods", "fractions:Fraction"], "must be a hashlearn.hashers.BaseHasher"),
        (["inference", "--methods", "my/module:My"], "a method of your own is written module:Class"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(arguments, message, tmp_path):
    ended = bench(*arguments, out=tmp_path)
    assert ended.exit_code == 2
    assert message in ended.output
    assert "Traceback" not in ended.output


def test_a_damaged_result_is_named(tmp_path):
    options = ("inference", "--dataset", "digits", "--methods", "Quick", "--bits", "8", "--draws", "1")
    bench(*options, out=tmp_path)
    (file,) = (tmp_path / "inference/digits/Quick").iterdir()
    file.write_text("{")
    ended = bench(*options, out=tmp_path)
    assert ended.exit_code == 2
    assert f"{file}: is damaged" in ended.output
