"""``hashlearn duplicates``: the pairs of `near_duplicates` in every format, and errors that name the option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn import near_duplicates
from tests.cli.files import N, X, answer, invoke, refused

FOUND = near_duplicates(X[:N], similarity=0.97)


def test_csv_and_npy_hold_the_pairs(folder: Path) -> None:
    report = answer("duplicates", "X.npy", "--similarity", 0.97, "-o", "pairs.csv")
    assert report["pairs"] == len(FOUND.pairs) > 0
    assert (report["exact"], report["promised_missed"], report["n_rows"]) == (True, 0.0, N)
    assert report["n_kept"] == len(FOUND.keep())
    assert report["output"] == "pairs.csv"
    assert Path("pairs.csv").read_text("utf-8").startswith("first,second,similarity\n")
    table = np.loadtxt("pairs.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table, np.column_stack([FOUND.pairs, FOUND.similarities]))
    answer("duplicates", "both.npz::X", "--similarity", 0.97, "-o", "pairs.npy")
    np.testing.assert_array_equal(np.load("pairs.npy"), FOUND.pairs)


def test_sparse_rows(folder: Path) -> None:
    assert answer("duplicates", "sparse.npz", "--similarity", 0.97, "-o", "pairs.npy")["pairs"] == len(FOUND.pairs)


def test_parquet_holds_the_pairs(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    answer("duplicates", "X.npy", "--similarity", 0.97, "-o", "pairs.parquet")
    table = parquet.read_table("pairs.parquet").to_pydict()
    assert list(table) == ["first", "second", "similarity"]
    np.testing.assert_array_equal(np.column_stack(list(table.values())[:2]), FOUND.pairs)
    np.testing.assert_array_equal(table["similarity"], FOUND.similarities)


def test_text_says_what_is_promised(folder: Path) -> None:
    said = invoke("duplicates", "X.npy", "--similarity", 0.97, "-o", "pairs.csv").stdout
    assert said == f"{FOUND}\nThe pairs are in pairs.csv.\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["X.npy", "-o", "pairs.txt"], "--output pairs.txt: pairs are written as .csv, .npy, .parquet"),
        (["X.npy", "-o", "X.npy"], "--output X.npy: is an input of this command"),
        (["none.npy", "-o", "pairs.csv"], "none.npy"),
        (["X.npy", "-o", "pairs.csv", "--similarity", 2], "--similarity: similarity must be a number above 0"),
        (["X.npy", "-o", "pairs.csv", "--missed", 0], "--missed: missed must be a number above 0 and below 1"),
        (["X.npy", "-o", "pairs.csv", "--confidence", 1], "--confidence: confidence must be"),
        (["X.npy", "-o", "pairs.csv", "--bits", 0], "--bits: n_bits must be an integer from 1"),
        (["X.npy", "-o", "pairs.csv", "--max-pairs", 0], "--max-pairs: max_pairs must be an integer of at least 1"),
        (["X.npy", "-o", "pairs.csv", "--max-pairs", 1], "FEATURES: X has more than max_pairs=1 pairs"),
    ],
)
def test_bad_input(folder: Path, given: list[Any], words: str) -> None:
    refused("duplicates", *given, words=words)
    assert not Path("pairs.csv").exists()
