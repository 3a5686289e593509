"""Grouping, means and verdicts, by hand."""

from __future__ import annotations

import pytest

from hashlearn.experiments.bench.blocks import Block, Entry, Verdict, blocks, metric
from hashlearn.experiments.report.tables import Part, headline, tally
from tests.experiments.report import synthetic


def one_block(**scores: list[float]) -> Block:
    """The inference table on MNIST at 8 bits with these scores, in per cent, one a draw."""
    found = []
    for method, values in scores.items():
        for draw, value in enumerate(values):
            cell = synthetic.cell("inference", "mnist", method, 8, draw)
            cell["metrics"]["precision@2"] = value / 100.0
            found.append(cell)
    return blocks(found)[0]


def test_mean_and_sample_deviation_over_draws() -> None:
    block = one_block(SDR=[86.0, 88.0, 90.0], AL=[80.0])
    score = block.entry("SDR", 8, metric("precision@2"))
    assert (score.mean, score.deviation, len(score.values)) == pytest.approx((88.0, 2.0, 3))
    assert block.entry("AL", 8, metric("precision@2")) == Entry((80.0,))
    assert block.entry("AL", 8, metric("precision@2")).deviation is None
    assert block.entry("NOPT", 8, metric("precision@2")) == Entry(())
    assert block.entry("NOPT", 8, metric("precision@2")).mean is None
    assert (block.methods, block.lengths, block.draws) == (["SDR", "AL"], [8], 3)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [(87.34, "better"), (87.33, "within"), (86.33, "within"), (85.33, "within"), (85.32, "worse")],
)
def test_tolerance_of_one_point_either_way(measured: float, expected: str) -> None:
    rows = one_block(SDR=[measured]).beside_paper(lambda *key: 86.33 if key[2] == "SDR" else None)
    assert rows["SDR"][0].verdict is Verdict(expected)
    assert rows["SDR"][0].difference == pytest.approx(measured - 86.33)
    assert list(rows) == ["SDR"]


def test_methods_of_the_paper_that_were_not_run_have_their_row() -> None:
    rows = one_block(SDR=[86.0], mine=[50.0]).beside_paper(synthetic.paper_value)
    assert list(rows) == ["SDR", "AL", "NOPT", "GraphCut", "mine"]
    assert [entry.values for entry in rows["AL"]] == [()]
    assert rows["AL"][0].verdict is None
    assert rows["mine"][0].verdict is None
    assert tally(rows).total() == 1


def test_headline_counts_what_the_tables_mark() -> None:
    block = one_block(SDR=[90.0], AL=[80.0], NOPT=[70.4], GraphCut=[60.0])
    published = {"SDR": 80.0, "AL": 80.5, "NOPT": 70.0, "GraphCut": 70.0}
    rows = block.beside_paper(lambda *key: published.get(key[2]))
    said = headline([Part(block, rows)])
    assert said.startswith("3 of 4 measured values")
    assert "1 of them clearly better" in said
    assert "1 is worse" in said
    assert headline([Part(block, block.beside_paper(lambda *key: None))]) == "4 cells measured."


def test_blocks_come_in_the_papers_order() -> None:
    pairs = [("knn", "mnist"), ("inference", "caltech101"), ("inference", "cifar10"), ("inference", "mnist")]
    found = [synthetic.cell(table, dataset, "SDR", 8) for table, dataset in pairs]
    order = [(block.table.name, block.dataset) for block in blocks(found)]
    assert order == [("inference", "mnist"), ("inference", "cifar10"), ("inference", "caltech101"), ("knn", "mnist")]
