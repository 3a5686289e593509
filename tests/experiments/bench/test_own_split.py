"""``hashlearn bench`` on a file with a test part of its own: its rows only ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from hashlearn.cli import main
from hashlearn.experiments.bench.blocks import blocks, published_value
from hashlearn.experiments.bench.plans import plan
from hashlearn.experiments.bench.results import read
from hashlearn.experiments.bench.run import run

N_CLASSES, A_CLASS, N_TEST = 4, 60, 15


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def save(path: Path, split: bool = True) -> None:
    """Test rows lie where the next class's other rows lie: only another test row near a query has its label."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(N_CLASSES), A_CLASS)
    is_test = np.tile(np.arange(A_CLASS) >= A_CLASS - N_TEST, N_CLASSES)
    order = rng.permutation(len(y))
    y, is_test = y[order], is_test[order]
    X = 10.0 * np.eye(N_CLASSES)[(y + is_test) % N_CLASSES] + 0.1 * rng.normal(size=(len(y), N_CLASSES))
    parts = {"split": np.where(is_test, "test", "train")} if split else {}
    np.savez(path, X=X, y=y, **parts)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HASHLEARN_DATA", str(tmp_path / "no data"))
    Path("files").mkdir()
    save(Path("files/mine.npz"))
    return tmp_path


BENCH = ("bench", "supervised", "--dataset", "files/mine.npz", "--methods", "SDH", "--bits", "8")


def test_test_rows_are_neither_searched_nor_learned_from(folder: Path) -> None:
    ended = invoke(*BENCH, "--draws", 2)
    assert ended.exit_code == 0, ended.output
    assert "180 in the database, training rows among them; 60 queries (canonical)" in ended.stdout
    for record in read("results").cells:
        assert record["protocol"]["queries"] == "canonical"
        assert record["protocol"]["n_queries"] == N_CLASSES * N_TEST
        assert record["protocol"]["n_database"] == N_CLASSES * (A_CLASS - N_TEST)
        assert record["metrics"]["map"] < 0.4  # the nearest rows of the database have another label


def test_tables_say_whether_draws_learn_from_the_same_rows(folder: Path) -> None:
    assert "deviation of 2 draws with the same training rows\n" in invoke(*BENCH, "--draws", 2).stdout
    assert invoke("report", "results", "-o", "page.html").exit_code == 0
    assert "Mean of 2 draws with the same training rows ± standard" in Path("page.html").read_text("utf-8")
    drawn = invoke(*BENCH, "--draws", 2, "--train-per-class", 10, "--out", "drawn")
    assert "deviation of 2 draws\n" in drawn.stdout


def test_results_of_other_rows_are_not_filled_up(folder: Path) -> None:
    before = Path("files/mine.npz").read_bytes()
    save(Path("files/mine.npz"), split=False)
    assert "1 cell(s) run, 0 stored before" in invoke(*BENCH, "--draws", 1).output
    Path("files/mine.npz").write_bytes(before)
    ended = invoke(*BENCH, "--draws", 2)
    assert "2 cell(s) run, 0 stored before" in ended.output
    assert "mine: asked before with other options or rows; `report` shows what was asked last" in ended.output
    assert {record["protocol"]["name"] for record in read("results").cells} == {"own"}
    save(Path("files/mine.npz"), split=False)
    assert "0 cell(s) run, 1 stored before" in invoke(*BENCH, "--draws", 1).output
    (record,) = read("results").cells
    assert record["protocol"]["name"] == "120 per class"


def test_a_file_that_changes_during_the_run_is_not_measured(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = plan("supervised", ["files/mine.npz"], ["SDH"], [8], 1)
    save(Path("files/mine.npz"), split=False)
    outcome = run(wanted, "results")
    assert outcome.not_loaded == {"mine": "files/mine.npz: has changed since the run began; run the same command again"}
    assert read("results", wanted.keys).missing == tuple(wanted.cells)


def arrays(path: str) -> dict[str, Any]:
    with np.load(path) as file:
        return dict(file)


def counts(record: Any) -> dict[str, int]:
    return {key: record["protocol"][key] for key in ("n_train", "n_database", "n_queries")}


def test_rows_marked_database_are_searched_and_not_learned_from(folder: Path) -> None:
    file = arrays("files/mine.npz")
    split = np.where(
        file["split"] == "train", np.where(np.arange(len(file["y"])) % 3 == 0, "train", "database"), "test"
    )
    np.savez("files/mine.npz", X=file["X"], y=file["y"], split=split)
    assert invoke(*BENCH, "--draws", 1).exit_code == 0
    (record,) = read("results").cells
    n_train = int((split == "train").sum())
    assert counts(record) == {"n_train": n_train, "n_database": 180, "n_queries": 60}


def test_a_protocol_by_name_draws_from_the_other_rows(folder: Path) -> None:
    ended = invoke(*BENCH, "--draws", 1, "--protocol", "120", "--train-per-class", "all")
    assert ended.exit_code == 0, ended.output
    (record,) = read("results").cells
    assert counts(record) == {"n_train": 180, "n_database": 180, "n_queries": 60}
    assert record["protocol"]["asked"] == {"protocol": "120 per class", "train_per_class": "all"}
    more = invoke(*BENCH, "--draws", 1, "--protocol", "own", "--train-per-class", 46, "--out", "other")
    assert "protocol 'own' needs 46 training samples a class, class 0 has 45" in more.output
    save(Path("files/plain.npz"), split=False)
    none = invoke(*BENCH[:3], "files/plain.npz", *BENCH[4:], "--protocol", "own")
    assert (none.exit_code, none.stderr) == (
        2,
        "Error: plain: plain: protocol 'own' needs a split with rows marked 'test', it has none\n",
    )


def test_options_that_change_the_split_hide_the_papers_values(folder: Path) -> None:
    drawn = {"protocol": {"asked": {"train_per_class": 20}}}
    cell = {"table": "supervised", "dataset": "mnist", "method": "SDR", "n_bits": 8, "draw": 0}
    for record, has_paper in (({"cell": cell}, True), ({"cell": cell, **drawn}, False)):
        (block,) = blocks([record])
        assert (block.beside_paper(published_value)["SDR"][0].paper is not None) == has_paper


@pytest.mark.parametrize("suffix", ["npz", "npy", "parquet"])
def test_neighbors_of_files_without_labels(folder: Path, suffix: str) -> None:
    X = np.random.default_rng(1).normal(size=(300, 6)).astype(np.float32)
    if suffix == "npz":
        np.savez("files/rows.npz", X=X)
    elif suffix == "npy":
        np.save("files/rows.npy", X)
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {"id": np.arange(300), "text": ["a"] * 300, "vector": list(X)}
        parquet.write_table(arrow.table(columns), "files/rows.parquet")
    ended = invoke("bench", "neighbors", f"files/rows.{suffix}", "--bits", 4, "--draws", 1, "--methods", "ITQ,Sign")
    assert ended.exit_code == 0, ended.output
    records = read("results").cells
    assert {record["cell"]["method"] for record in records} == {"ITQ", "Sign"}
    for record in records:
        assert counts(record) == {"n_train": 270, "n_database": 270, "n_queries": 30}
        assert set(record["metrics"]) == {"neighbors@10", "neighbors@100"}
        assert record["metrics"]["neighbors@10"] > 10 / 270
    assert "average precision" not in ended.output
    assert invoke("report", "results", "-o", "page.html").exit_code == 0


def test_without_labels_methods_and_tables_that_need_them_are_refused_or_left_out(folder: Path) -> None:
    np.save("files/rows.npy", np.zeros((30, 4)))
    for arguments, said in (
        (("supervised",), "data set 'rows' has no y, and table 'supervised' needs labels; 'neighbors' does not"),
        (("neighbors", "--methods", "SDH"), "method SDH learns from labels, and data set 'rows' has no y"),
        (("neighbors", "--metric", "map"), "has no y; --metric and a number for --train-per-class need labels"),
    ):
        ended = invoke("bench", *arguments, "--dataset", "files/rows.npy")
        assert ended.exit_code == 2
        assert said in ended.stderr
    wanted = plan("neighbors", ["files/rows.npy"])
    assert wanted.methods == ("SDR", "AL", "SDR distance", "ITQ", "Sign")


def test_labels_and_split_are_columns_of_a_parquet_file(folder: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = arrays("files/mine.npz")
    columns = {f"x{k}": file["X"][:, k] for k in range(N_CLASSES)} | {"id": np.arange(len(file["y"]))}
    words = [f"class {label}" for label in file["y"]]
    parquet.write_table(arrow.table({**columns, "y": words, "split": file["split"]}), "files/table.parquet")
    assert invoke(*BENCH, "--draws", 1).exit_code == 0
    ended = invoke(*BENCH[:3], "files/table.parquet", *BENCH[4:], "--draws", 1)
    assert ended.exit_code == 0, ended.output
    first, second = read("results").cells
    assert (first["digest"], counts(first)) == (second["digest"], counts(second))
