"""``hashlearn demo``: the table, the worked search and the page."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from hashlearn.cli import main
from hashlearn.cli.demo import NEXT_STEPS
from hashlearn.experiments.bench import digits
from tests.pages.browser import Browser, find_browser


@pytest.fixture(scope="module")
def result():
    return digits.run(n_bits=8, n_images=800)


def test_labels_keep_classes_and_ranking_keeps_neighbors(result):
    assert [(row.setting, row.method) for row in result.rows] == [
        ("no labels", "signs of PCA"),
        ("no labels", "RankingHasher"),
        ("labels", "TwoStepHasher, AL"),
        ("labels", "TwoStepHasher, SDR"),
    ]
    signs, ranking, *with_labels = result.rows
    assert ranking.neighbors > signs.neighbors + 0.02
    for labels in with_labels:
        assert ranking.neighbors > labels.neighbors
        assert labels.mean_average_precision > max(signs.mean_average_precision, ranking.mean_average_precision) + 0.1


def test_searches_are_sorted(result):
    assert list(result.neighbors) == [row.method for row in result.rows]
    for neighbors in result.neighbors.values():
        distances = [neighbor.distance for neighbor in neighbors]
        assert distances == sorted(distances)
        assert len(distances) == digits.N_SHOWN
        assert all(0 <= neighbor.label <= 9 for neighbor in neighbors)


def test_what_to_do_next_are_commands_that_exist():
    for line, _ in NEXT_STEPS:
        program, name, *arguments = line.split()
        options = {flag for parameter in main.commands[name].params for flag in parameter.opts}
        assert program == "hashlearn"
        assert {argument for argument in arguments if argument.startswith("-")} <= options


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    """The outcome of the command, and where its page lies."""
    target = tmp_path_factory.mktemp("demo") / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digits, "run", lambda n_bits, seed, progress: result)
        outcome = CliRunner().invoke(main, ["demo", "--bits", "8", "-o", str(target)])
    assert outcome.exit_code == 0, outcome.output
    return outcome, target


def test_command_prints_the_table_and_writes_the_page(result, page):
    outcome, target = page
    assert "A search: the images nearest to a" in outcome.output
    for row in result.rows:
        assert f"{100 * row.neighbors:.3g} %" in outcome.output
    assert "Will binary codes hurt my search?" in outcome.output
    assert NEXT_STEPS[-1][0] in outcome.output
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count("<img") >= 1 + len(result.rows) * digits.N_SHOWN
    assert text.count("<h1>") == 1
    for row in result.rows:
        assert f"<td>{100 * row.neighbors:.3g} %</td>" in text
    for command, _ in NEXT_STEPS:
        assert command in text


@pytest.mark.skipif(find_browser() is None, reason="needs Chromium on the PATH (Debian: apt install chromium)")
def test_the_page_in_a_browser(page, tmp_path):
    browser = Browser(find_browser())
    try:
        for width in (390, 1280):
            for scheme in ("light", "dark"):
                browser.look(width, scheme=scheme)
                browser.open(page[1])
                assert browser.problems() == []
                assert browser.overflowing() == []
                folder = Path(os.environ.get("HASHLEARN_SCREENSHOTS", tmp_path))
                browser.screenshot(folder / f"demo-{width}-{scheme}.png")
    finally:
        browser.close()
