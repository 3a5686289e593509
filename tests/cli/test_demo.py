"""``hashlearn demo``: the table, the worked search and the page."""

import pytest
from click.testing import CliRunner

from hashlearn.cli import main
from hashlearn.cli.demo import NEXT_STEPS
from hashlearn.experiments.bench import digits


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
        distances = [distance for _, distance in neighbors]
        assert distances == sorted(distances)
        assert len(distances) == digits.N_SHOWN
        assert all(0 <= label <= 9 for label, _ in neighbors)


def test_what_to_do_next_are_commands_that_exist():
    for line, _ in NEXT_STEPS:
        program, name, *arguments = line.split()
        options = {flag for parameter in main.commands[name].params for flag in parameter.opts}
        assert program == "hashlearn"
        assert {argument for argument in arguments if argument.startswith("-")} <= options


def test_command_prints_the_table_and_writes_the_page(result, monkeypatch, tmp_path):
    monkeypatch.setattr(digits, "run", lambda n_bits, seed, progress: result)
    target = tmp_path / "page.html"
    outcome = CliRunner().invoke(main, ["demo", "--bits", "8", "-o", str(target)])
    assert outcome.exit_code == 0, outcome.output
    assert "A search: the images nearest to a" in outcome.output
    for row in result.rows:
        assert f"{100 * row.neighbors:.3g} %" in outcome.output
    assert "Will binary codes hurt my search?" in outcome.output
    assert NEXT_STEPS[-1][0] in outcome.output
    page = target.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<img" in page
