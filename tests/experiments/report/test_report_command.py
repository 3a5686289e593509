"""``hashlearn report``: from a folder of stored cells to a page, and how it ends on bad input."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hashlearn.cli.report import report_command
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.results import store, store_request
from tests.experiments.report import synthetic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    wanted = plan("inference", ["mnist"], ["SDR", "AL"], [8], 1)
    store_request(tmp_path / "results", wanted, "mnist")
    for cell, key in wanted.keys.items():
        store(tmp_path / "results", cell, key, synthetic.cell("inference", "mnist", cell.method, 8))
    return tmp_path / "results"


def test_writes_the_page_and_says_what_is_in_it(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    outcome = CliRunner().invoke(report_command, [str(folder), "-o", str(target), "--title", "A <title>"])
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output == f"2 cells shown, 0 missing. To look at: {target}\n"
    text = target.read_text(encoding="utf-8")
    assert "<h1>A &lt;title&gt;</h1>" in text
    assert "paper 86.33" in text  # the real one
    assert "none missing" in text
    assert str(tmp_path) not in text


def test_bad_input_ends_with_a_message_and_2(folder: Path, tmp_path: Path) -> None:
    (stored,) = (folder / "inference" / "mnist" / "SDR").iterdir()
    whole = stored.read_text()
    for content, said in ((whole[:-9], "damaged"), (whole.replace('"key"', '"other"'), "is not the result that its")):
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
