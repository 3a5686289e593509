"""The frontier measures what it says, and README's picture shows the stored results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("benchmarks.frontier", reason="benchmarks/ is not importable: run pytest from the root")

from benchmarks.claims.stored import read_all
from benchmarks.embedding_codes import _class_bytes
from benchmarks.frontier import CODES, QUANTIZERS, main, picture

from hashlearn import metrics
from hashlearn.bits.hamming import hamming_distances
from hashlearn.experiments import datasets
from hashlearn.experiments.bench.protocols import AllRows
from hashlearn.hashers import SignCodes

ROOT = Path(__file__).parents[2]


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> datasets.DataSet:
    digits = datasets.load("digits")
    few = replace(digits, X=digits.X[:700], y=digits.y[:700], images=None)
    monkeypatch.setattr(datasets, "load", lambda name: few)
    return few


def measured(*arguments: str, path: Path) -> list[list[str]]:
    main(["measure", *arguments, "--json", str(path)])
    return list(json.loads(path.read_text())["rows"])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_recall_is_that_of_the_metric_s_neighbors(metric: str, few_digits: datasets.DataSet, tmp_path: Path) -> None:
    ((name, cell),) = measured("--methods", "Sign", "--bytes", "4", "--metric", metric, path=tmp_path / "json")
    split = AllRows().draw(few_digits, 0)
    database, queries = few_digits.X[split.database].astype(float), few_digits.X[split.queries].astype(float)
    if metric == "cosine":
        database, queries = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (database, queries))
    true = np.argsort(((queries[:, None] - database) ** 2).sum(axis=2), axis=1, kind="stable")[:, :10]
    hasher = SignCodes(32, features="pca").fit(database)
    nearest = np.argsort(hamming_distances(hasher.encode(queries), hasher.encode(database)), axis=1, kind="stable")
    expected = metrics.recall_of_neighbors(nearest, true, k=10)
    hamming, asymmetric, rescored = map(float, cell.split(" / "))
    assert name == "`Sign`"
    assert hamming == pytest.approx(100 * expected, abs=1.0)
    assert hamming < asymmetric < rescored <= 100.0


def test_every_method_beats_chance_and_sizes_that_it_does_not_have_are_left_out(
    few_digits: datasets.DataSet, tmp_path: Path
) -> None:
    pytest.importorskip("faiss")
    learned = [name for name in CODES if name.startswith("Ranking")]  # the tests of RankingHasher fit these
    slow = ["LSQ", "RQ"]
    names = [name for name in (*CODES, *QUANTIZERS) if name not in (*learned, *slow)]
    chance = 100 * 10 / 630
    rows = measured("--methods", *names, "--bytes", "2", "12", path=tmp_path / "json")
    assert [row[0] for row in rows] == [f"`{name}`" for name in names]
    for name, small, large in rows:
        shown = [cell.split(" / ") for cell in (small, large) if cell != "–"]
        assert all(float(asymmetric) > 2 * chance for _, asymmetric, _ in shown)
        assert (small == "–") == ("RaBitQ" in name)
        assert (large == "–") == (name in ("`Sign`", "`Sign cut`", "`FAISS ITQ`"))  # 96 bits of 64 features


def test_the_picture_is_drawn_from_the_stored_results() -> None:
    results = read_all(ROOT)
    shown = (ROOT / "docs" / "front.svg").read_text("utf-8")
    assert picture(results) == shown, "python -m benchmarks.frontier draw"


def test_the_bar_of_a_linear_classifier_ranks_by_equal_classes() -> None:
    database, labels = np.repeat(np.eye(2), 2, axis=0), np.array([0, 0, 1, 1])
    queries = np.eye(2)  # the second looks like class 1 and is of class 0: two wrong rows, then two right ones
    rows = _class_bytes(database, queries, labels, np.array([0, 0])).rows
    expected = f"{100 * (1.0 + (1 / 3 + 2 / 4) / 2) / 2:.2f}"
    assert rows == [["its predicted class", expected], ["its known label", expected]]
