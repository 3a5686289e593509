"""Every command has --json, and those of the experiments print one object too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.cli import main
from hashlearn.experiments import datasets
from hashlearn.experiments.bench import digits
from tests.cli.files import invoke, refused
from tests.experiments.bench import fakes


@pytest.mark.parametrize("name", list(main.commands))
def test_every_command_has_it(name: str) -> None:
    assert any("--json" in option.opts for option in main.commands[name].params)


def test_bench_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(datasets, "load", fakes.load)
    fakes.register()
    request.addfinalizer(fakes.unregister)
    monkeypatch.setenv("HASHLEARN_DATA", str(tmp_path))
    options = ["--dataset", "digits", "--methods", "quick", "--bits", "8", "--draws", 2, "--out", tmp_path / "results"]
    result = invoke("bench", "inference", *options, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    assert len(found["values"]["digits"]["map"]["Quick"]["8"]["values"]) == 2
    assert (found["missing"], found["failed"]) == ([], {})
    page = invoke("report", tmp_path / "results", "-o", tmp_path / "page.html", "--json")
    assert json.loads(page.stdout)["cells"] == 2
    assert (tmp_path / "page.html").exists()


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = digits.run(n_bits=8, n_images=300, solvers=("al",))
    monkeypatch.setattr(digits, "run", lambda n_bits, seed, progress: small)
    result = invoke("demo", "--bits", 8, "-o", tmp_path / "page.html", "--json")
    found = json.loads(result.stdout)
    assert [row["method"] for row in found["rows"]] == [row.method for row in small.rows]
    assert Path(found["output"]).read_text("utf-8").startswith("<!doctype html>")


def test_script_in_labels_names_and_title_comes_out_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    labels = np.array(["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "plain"])[rng.integers(3, size=600)]
    np.savez("evil<script>.npz", X=rng.standard_normal((600, 16)), y=labels)
    options = ["--dataset", "evil<script>.npz", "--methods", "LSH", "--bits", "8", "--draws", 1, "--out", "results"]
    assert invoke("bench", "unsupervised", *options).exit_code == 0
    assert invoke("report", "results", "-o", "page.html", "--title", "<script>alert(2)</script>").exit_code == 0
    text = Path("page.html").read_text("utf-8")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("file", ["page", "./page"])
def test_a_report_needs_a_file_of_its_own_for_each_output(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused("report", "results", "-o", "page", "--csv", file, words="name the same file; name one for each")
