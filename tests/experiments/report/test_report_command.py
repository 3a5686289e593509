"""``hashlearn report``: from a folder of stored cells to a page, and how it ends on bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hashlearn.cli.report import report_command
from tests.experiments.report import synthetic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for method in ("SDR", "AL"):
        cell = synthetic.cell("inference", "mnist", method, 8)
        path = tmp_path / "results" / "inference" / "mnist" / method / "8-0.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(cell))
    return tmp_path / "results"


def test_writes_the_page_and_says_what_is_in_it(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    outcome = CliRunner().invoke(report_command, [str(folder), "-o", str(target), "--title", "A <title>"])
    assert outcome.exit_code == 0, outcome.output
    assert (
        outcome.output == f"2 cells shown, 0 missing. To look at: {target}\n"
    )  # nothing else is known to have been asked
    text = target.read_text(encoding="utf-8")
    assert "<h1>A &lt;title&gt;</h1>" in text
    assert "paper 86.33" in text  # the real one
    assert "none missing" in text
    assert str(tmp_path) not in text


def test_bad_input_ends_with_a_message_and_2(folder: Path, tmp_path: Path) -> None:
    stored = folder / "inference" / "mnist" / "SDR" / "8-0.json"
    whole = stored.read_text()
    for content, said in ((whole[:-9], "damaged"), (whole.replace('"schema": 2', '"schema": 99'), "format 99")):
        stored.write_text(content)
        outcome = CliRunner().invoke(report_command, [str(folder), "-o", str(tmp_path / "page.html")])
        assert outcome.exit_code == 2
        assert said in outcome.output
        assert str(stored) in outcome.output
        assert not (tmp_path / "page.html").exists()
    for arguments, said in (
        ([str(tmp_path / "nowhere")], "no such folder"),
        ([str(tmp_path / "nowhere"), "-o", str(tmp_path / "no" / "page.html")], "its folder does not exist"),
    ):
        outcome = CliRunner().invoke(report_command, arguments)
        assert outcome.exit_code == 2
        assert said in outcome.output
