"""Means, deviations and differences, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from hashlearn.experiments.bench.blocks import Entry
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.protocols import PROTOCOLS
from hashlearn.experiments.bench.results import Results
from hashlearn.experiments.bench.summary import summarize
from hashlearn.experiments.bench.tables import Cell
from tests.experiments.bench import fakes


def results(values):
    """A Results with precision@2 = each value; keys are (method, n_bits, draw)."""
    records = {
        Cell("inference", "mnist", *key): {
            "cell": {"features": "pixels", **dict(zip(("method", "n_bits", "draw"), key, strict=True))},
            "metrics": {"precision@2": value, "map": value / 2, "knn_accuracy": None},
        }
        for key, value in values.items()
    }
    return Results(Path("."), records, ())


def summary(values, metric="precision@2", methods=("SDR",), bits=(8, 16)):
    """What three draws of these methods and lengths have for the values."""
    return summarize(results(values), plan("inference", ["mnist"], methods, bits), "mnist", metric)


THREE = {("SDR", 8, 0): 0.87, ("SDR", 8, 1): 0.88, ("SDR", 8, 2): 0.92, ("SDR", 16, 0): 0.94}


def test_mean_sample_deviation_and_difference():
    shown = summary(THREE)
    entry = shown.rows["SDR"][8]
    assert entry.mean == pytest.approx(89.0)
    assert entry.deviation == pytest.approx(math.sqrt(7.0))  # (4 + 1 + 9) / 2
    assert entry.paper == 86.33
    assert entry.difference == pytest.approx(2.67)
    assert shown.rows["SDR"][16].deviation is None
    assert shown.n_draws == 3
    assert "mean ± standard deviation of 3 draws; in brackets the paper's" in shown.title
    assert "mnist (pixels): precision within 2 bits in %" in shown.title


def test_table_by_hand():
    shown = summary(THREE, methods=["SDR", "NOPT", "Broken"])
    assert shown.text().splitlines() == [
        "method                        L = 8                               L = 16",
        "──────  ───────────────────────────  ───────────────────────────────────",
        "SDR     89.00 ± 2.65 (86.33, +2.67)  94.00 (93.86, +0.14) [1 of 3 draws]",
        "NOPT                      – (81.14)                            – (93.41)",
        "Broken                            –                                    –",
    ]


def test_the_protocol_in_words():
    drawn = PROTOCOLS["120 per class"].draw(fakes.dataset((60,) * 42 + (20,) * 60), 0).description
    found = results(THREE)
    for record in found.records.values():
        record["protocol"] = drawn
    assert summarize(found, plan("inference", ["mnist"]), "mnist", "map").protocol == (
        "Protocol '120 per class': 42 classes (60 smaller ones left out); 504 training samples, 12 of each class; "
        "2,100 in the database; 420 queries (10 per class)"
    )


def test_other_metrics_have_no_paper():
    shown = summary(THREE, "map")
    assert shown.rows["SDR"][8].mean == pytest.approx(44.5)
    assert shown.rows["SDR"][8].paper is None
    assert "brackets" not in shown.title


def test_methods_and_lengths_that_were_asked_for_are_rows_even_if_empty():
    shown = summary({}, methods=["SDR", "Broken"], bits=[8])
    assert shown.rows == {"SDR": {8: Entry((), 86.33)}, "Broken": {8: Entry((), None)}}
    assert "Broken  –" in shown.text()


def test_rows_are_in_the_order_of_the_plan():
    values = {(method, 8, 0): 0.5 for method in ("GraphCut", "AL", "SDR")}
    assert list(summary(values, methods=["AL", "Quick", "SDR"]).rows) == ["AL", "Quick", "SDR"]
    assert list(summary(values, methods=None).rows) == ["SDR", "AL", "NOPT", "GraphCut"]
