"""``hashlearn fit`` without labels: which method is taken, what is said about training, queries and time limits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import RankingHasher, load
from hashlearn.hashers import HASHERS
from tests.cli.files import N, X, Y, answer, invoke, refused, write_parquet

QUICK = ["--set", "n_steps=20", "--set", "hidden=16"]
SHORT = {"n_steps": 20, "hidden": 16, "random_state": 0}


def test_rows_without_labels_are_ranked(folder: Path) -> None:
    found = answer("fit", "X.npy", "-o", "new", *QUICK)
    assert (found["method"], found["why"], found["n_bits"]) == ("ranking", "there are no labels", 64)
    expected = RankingHasher(**SHORT).fit(X[:N])
    np.testing.assert_array_equal(load("new").encode(X), expected.encode(X))
    report = expected.ranking_report_
    assert report.before is not None
    assert report.after is not None
    assert found["ranking"] == {
        "encoder": "mlp",
        "n_steps": 20,
        "ending": "all steps done",
        "n_held_out": 15,
        "k": 10,
        "before": report.before._asdict(),
        "after": report.after._asdict(),
    }
    assert report.after.recall > report.before.recall


LABELS = ["--labels", "y.npy"]


@pytest.mark.parametrize(
    ("options", "method", "why"),
    [
        ([], "ranking", "there are no labels"),
        (["--encoder", "linear", "--time-limit", 60], "ranking", "there are no labels"),
        (["--solver", "spectral"], "two_step", "it has solver"),
        (["--target", "distance", "--solver", "spectral", "--time-limit", 60], "two_step", "it has solver, target"),
        (["--hash-function", "linear_ridge", "--set", "n_sweeps=1"], "two_step", "it has hash_function, n_sweeps"),
        (LABELS, "two_step", "there are labels"),
        ([*LABELS, "--solver", "spectral"], "two_step", "there are labels"),
        ([*LABELS, "--encoder", "linear"], "ranking", "it has encoder"),
        ([*LABELS, "--queries", "Q.npy"], "ranking", "it learns from queries"),
        (["--method", "lsh"], "lsh", None),
    ],
)
def test_the_method_that_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: list[Any], method: str, why: str | None
) -> None:
    monkeypatch.setattr("hashlearn.hashers.ranking.estimator.FEWEST_STEPS", 1)
    monkeypatch.setattr("hashlearn.hashers.ranking.estimator.PASSES", 1)
    found = answer("fit", "X.npy", "-o", "new", "--bits", 8, *options)
    assert (found["method"], found["why"], type(load("new"))) == (method, why, HASHERS[method])
    assert ("ranking" in found) == (method == "ranking")
    said = invoke("fit", "X.npy", "-o", "new", "--bits", 8, *options).stdout
    chosen = re.search(r"^method +(.*)$", said, re.MULTILINE)
    assert chosen
    assert chosen[1] == f"{method}, 8 bits" + (f"; chosen because {why}" if why else "")


def test_training_and_recall_are_said(folder: Path) -> None:
    said = invoke("fit", "X.npy", "-o", "new", *QUICK).stdout
    assert re.search(r"^training +mlp encoder: 300 rows, 285 anchors, .*; all steps done; kept step \d+$", said, re.M)
    arrow = r"[\d.]+ % → [\d.]+ %"
    assert re.search(rf"^recall@10 +Hamming {arrow}, asymmetric {arrow}, of 15 held-out rows$", said, re.M)
    np.save("few.npy", X[:70])
    said = invoke("fit", "few.npy", "-o", "new", "--bits", 8, *QUICK).stdout
    assert "too few rows to keep some out: the start is used" in said
    assert "recall@10" not in said
    found = answer("fit", "few.npy", "-o", "new", "--bits", 8, *QUICK)["ranking"]
    assert (found["before"], found["after"]) == (None, None)


def test_labels_and_queries_reach_the_ranking(folder: Path) -> None:
    hasher = RankingHasher(16, encoder="linear", n_steps=20, random_state=0)
    for options, arguments in (
        ([], {}),
        (["--queries", "Q.npy"], {"queries": X[N : N + 40]}),
        (LABELS, {"y": Y[:N]}),
    ):
        answer("fit", "X.npy", "-o", "new", "--bits", 16, "--encoder", "linear", "--set", "n_steps=20", *options)
        np.testing.assert_array_equal(load("new").encode(X), hasher.fit(X[:N], **arguments).encode(X))


def test_columns_of_queries_are_found_by_name(folder: Path) -> None:
    write_parquet(folder)
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table("columns.parquet")
    parquet.write_table(table.select(table.column_names[::-1]), "reversed.parquet")
    digests = set()
    for queries in ("columns.parquet", "reversed.parquet"):
        assert invoke("fit", "columns.parquet", "-o", "new", "--queries", queries, *QUICK).exit_code == 0
        digests.add(answer("encode", "new", "X.npy", "-o", "codes.npy")["sha256"])
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--queries", "nowhere.npy"], "--queries: nowhere.npy: there is no such file"),
        (["--queries", "narrow.npy"], "--queries: narrow.npy: has 3 feature(s) a row, X.npy has 64"),
        (["--queries", "nan.npy"], "--queries: nan.npy: contains NaN at row 2, column 5"),
        (["--queries", "Q.npy", "--output", "Q.npy"], "--output Q.npy: is an input of this command"),
        (["--queries", "Q.npy", "--method", "itq"], "--queries: method 'itq' does not learn from queries"),
        (["--queries", "Q.npy", "--solver", "sdr"], "--solver: method 'ranking' has no solver; it has batch_size"),
        (["--encoder", "linear", "--solver", "sdr"], "--solver: method 'ranking' has no solver"),
        (["--encoder", "liner"], "encoder must be one of 'mlp', 'linear', got 'liner'; did you mean 'linear'?"),
        (["--method", "itq", "--encoder", "mlp"], "--encoder: method 'itq' has no encoder"),
        (["--set", "n_steps=-1"], "n_steps must be an integer of at least 0, got -1"),
        (["--set", "sweeps=3"], "--set: method 'ranking' has no sweeps"),
    ],
)
def test_mistakes(folder: Path, options: list[str], words: str) -> None:
    np.save("narrow.npy", X[:20, :3])
    broken = X[:20].copy()
    broken[2, 5] = np.nan
    np.save("nan.npy", broken)
    output = [] if "--output" in options else ["-o", "new"]
    refused("fit", "X.npy", "--bits", 8, *output, *options, words=words)
    assert not (folder / "new").exists()


def test_sparse_rows_are_refused_with_a_way_out(folder: Path) -> None:
    refused(
        "fit",
        "sparse.npz",
        "-o",
        "new",
        words="Sparse data was passed for X, but dense data is required by RankingHasher",
    )
    assert invoke("fit", "sparse.npz", "-o", "new", "--bits", 8, "--method", "lsh").exit_code == 0
