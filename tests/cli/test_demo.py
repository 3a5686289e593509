"""``hashlearn demo``: the table, the worked search and the page."""

import pytest
from click.testing import CliRunner

from hashlearn.cli import main
from hashlearn.experiments.bench import digits
from hashlearn.experiments.bench.cell import NEAREST, SHOWN_QUERIES
from hashlearn.experiments.report.page import NEXT_STEPS, digits_page


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


def test_searches_are_sorted_and_never_find_the_query(result):
    assert list(result.galleries) == [row.method for row in result.rows]
    for gallery in result.galleries.values():
        assert len(gallery["queries"]) == SHOWN_QUERIES
        for query in gallery["queries"]:
            distances = [image["distance"] for image in query["neighbours"]]
            assert distances == sorted(distances)
            assert len(distances) == NEAREST
            assert query["image"] not in [image["image"] for image in query["neighbours"]]


def test_page_is_whole_self_contained_and_escaped(result):
    result.report = "<script>alert(1)</script>"
    text = digits_page(result)
    assert text.count("<figure") == len(result.rows) * SHOWN_QUERIES * NEAREST
    assert text.count("<img") == text.count("<figure") + SHOWN_QUERIES
    assert "<script" not in text
    assert "http" not in text
    for score in (result.rows[-1].precision, result.rows[1].neighbors):
        assert f"{100 * score:.1f} %" in text


def test_what_to_do_next_are_commands_that_exist(result):
    text = digits_page(result, "promise.html")
    assert 'href="promise.html"' in text
    for words, line in NEXT_STEPS:
        assert words in text
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
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "Will binary codes hurt my search?" in outcome.output
    assert 'href="page-promise.html"' in target.read_text(encoding="utf-8")
    assert NEXT_STEPS[-1][1] in outcome.output
    promise = (tmp_path / "page-promise.html").read_text(encoding="utf-8")
    assert promise.startswith("<!doctype html>")
    assert "<img" in promise
