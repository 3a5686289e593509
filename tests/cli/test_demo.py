"""``hashlearn demo``: the table, the worked search and the page."""

import pytest
from click.testing import CliRunner

from hashlearn.cli import main
from hashlearn.experiments.bench import digits
from hashlearn.experiments.bench.cell import NEAREST, SHOWN_QUERIES
from hashlearn.experiments.report.page import digits_page


@pytest.fixture(scope="module")
def result():
    return digits.run(n_bits=8, n_images=300, solvers=("al",))


def test_labels_beat_no_labels_beat_chance(result):
    assert [(row.setting, row.method) for row in result.rows] == [
        ("no labels", "sign of PCA"),
        ("no labels", "AL"),
        ("labels", "AL"),
    ]
    signs, unsupervised, supervised = (row.mean_average_precision for row in result.rows)
    assert supervised > unsupervised > 0.2
    assert supervised > signs + 0.1


def test_searches_are_sorted_and_never_find_the_query(result):
    assert list(result.galleries) == [f"{row.method}, {row.setting}" for row in result.rows]
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
    assert f"{100 * result.rows[-1].precision:.1f} %" in text


def test_command_prints_the_table_and_writes_the_page(result, monkeypatch, tmp_path):
    monkeypatch.setattr(digits, "run", lambda n_bits, seed, progress: result)
    target = tmp_path / "page.html"
    outcome = CliRunner().invoke(main, ["demo", "--bits", "8", "-o", str(target)])
    assert outcome.exit_code == 0, outcome.output
    assert "A search: the images nearest to a" in outcome.output
    assert outcome.output.count("labels") >= 3
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
