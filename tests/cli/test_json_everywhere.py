"""Every command has --json, and those of the experiments print one object too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hashlearn.cli import main
from hashlearn.experiments import datasets
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


@pytest.mark.parametrize("file", ["page", "./page"])
def test_a_report_needs_a_file_of_its_own_for_each_output(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused("report", "results", "-o", "page", "--csv", file, words="name the same file; name one for each")
