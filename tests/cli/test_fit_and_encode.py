"""``hashlearn fit`` and ``hashlearn encode``: from files to a model, from a model to files of codes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from hashlearn import load, persistence
from hashlearn.files import codes_and_ids
from hashlearn.hashers import HASHERS
from tests.cli.files import N, X, Y, answer, invoke, write_parquet
from tests.persistence.models import QUICK


def test_fit_is_the_estimator(folder: Path) -> None:
    found = answer("fit", "X.npy", "--labels", "y.npy", "-o", "new", "--bits", 12, "--seed", 3, "--notes", "n")
    assert found["model"] == "new"
    assert (found["method"], found["n_bits"], found["n_samples"], found["n_features"]) == ("two_step", 12, N, 64)
    assert found["bytes"] == (folder / "new").stat().st_size
    expected = HASHERS["two_step"](12, random_state=3).fit(X[:N], Y[:N])
    np.testing.assert_array_equal(load("new").encode(X), expected.encode(X))
    assert load("new").get_params() == expected.get_params()
    assert persistence.describe("new")["provenance"]["notes"] == "n"


def test_options_and_settings_reach_the_hasher(folder: Path) -> None:
    invoke("fit", "both.npz::X", "-o", "new", "--bits", 4, "--solver", "spectral", "--target", "distance",
           "--hash-function", "linear_svm", "--set", "n_sweeps=1", "--set", "init=random")  # fmt: skip
    parameters = load("new").get_params()
    wanted = {"n_bits": 4, "solver": "spectral", "target": "distance", "hash_function": "linear_svm", "n_sweeps": 1}
    assert parameters.items() >= {**wanted, "init": "random", "random_state": 0}.items()


@pytest.mark.parametrize("name", HASHERS)
def test_every_hasher_can_be_fitted_and_used(folder: Path, name: str) -> None:
    settings = [part for item in QUICK.get(name, {}).items() for part in ("--set", "{}={}".format(*item))]
    np.save("few.npy", X[:80])
    np.save("labels.npy", Y[:80])
    result = invoke("fit", "few.npy", "--labels", "labels.npy", "-o", "new", "--method", name, "--bits", 9, *settings)
    assert result.exit_code == 0, result.output
    model = load("new")
    ignored = f"method {name!r} learns without labels: --labels was not used"
    assert (ignored in result.stderr) != model._learns_from_labels
    assert answer("encode", "new", "few.npy", "-o", "codes.npy")["n_bits"] == 9
    np.testing.assert_array_equal(np.load("codes.npy"), model.encode(X[:80]))
    if not model._learns_from_labels:
        invoke("fit", "few.npy", "-o", "without", "--method", name, "--bits", 9, *settings)
        np.testing.assert_array_equal(load("without").encode(X[:80]), model.encode(X[:80]))


@pytest.mark.parametrize("source", ["X.npy", "both.npz::X", "packed.npz", "columns.parquet", "lists.parquet"])
@pytest.mark.parametrize("batch", [None, 41, 299])
def test_formats_and_batches_change_nothing(folder: Path, source: str, batch: int | None) -> None:
    if source.endswith("parquet"):
        write_parquet(folder)
    size = [] if batch is None else ["--batch-rows", batch]
    found = answer("encode", "model", source, "-o", "codes.npy", *size)
    assert found["rows"] == N
    np.testing.assert_array_equal(np.load("codes.npy"), load("model").encode(X[:N]))
    assert found["sha256"] == hashlib.sha256((folder / "codes.npy").read_bytes()).hexdigest()
    assert found["bytes"] == (folder / "codes.npy").stat().st_size
    assert not list(folder.glob(".*"))


def test_sparse_rows(folder: Path) -> None:
    answer("encode", "model", "sparse.npz", "-o", "codes.npy")
    assert np.mean(np.load("codes.npy") == load("model").encode(X[:N])) > 0.99


def test_codes_as_parquet_do_not_depend_on_batches(folder: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    digests = {answer("encode", "model", "X.npy", "-o", f"{n}.parquet", "--batch-rows", n)["sha256"] for n in (64, 300)}
    assert len(digests) == 1
    codes, ids = codes_and_ids("64.parquet", 12)
    np.testing.assert_array_equal(codes, load("model").encode(X[:N]))
    np.testing.assert_array_equal(ids, np.arange(N))


def test_columns_are_found_by_the_names_that_were_learned(folder: Path) -> None:
    write_parquet(folder)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    assert invoke("fit", "columns.parquet", "-o", "new", "--method", "itq", "--bits", 8).exit_code == 0
    table = parquet.read_table("columns.parquet")
    shuffled = table.select(table.column_names[::-1]).append_column("more", arrow.array([0.0] * N))
    parquet.write_table(shuffled, "shuffled.parquet")
    for source in ("columns.parquet", "shuffled.parquet", "X.npy"):
        answer("encode", "new", source, "-o", f"{source}.npy")
    np.testing.assert_array_equal(np.load("shuffled.parquet.npy"), np.load("columns.parquet.npy"))
    np.testing.assert_array_equal(np.load("X.npy.npy"), np.load("columns.parquet.npy"))
    parquet.write_table(table.rename_columns([f"other {i}" for i in range(64)]), "renamed.parquet")
    result = invoke("encode", "new", "renamed.parquet", "-o", "codes.npy")
    assert (result.exit_code, "must have the columns of the model in the same order, got" in result.stderr) == (2, True)
