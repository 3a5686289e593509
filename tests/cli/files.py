"""Small files of digits in every format, a fitted model, and a way to run the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from sklearn.datasets import load_digits

from hashlearn.cli import main
from hashlearn.hashers import LSH

X, Y = load_digits(return_X_y=True)
N = 300


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def answer(*arguments: Any) -> dict[str, Any]:
    """The JSON object that a command prints, and nothing else."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    result = invoke(*arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    found: dict[str, Any] = json.loads(result.stdout, parse_constant=refuse)
    return found


def refused(*arguments: Any, words: str, code: int = 2) -> None:
    """One line on standard error that holds these words, and no traceback."""
    result = invoke(*arguments)
    assert result.exit_code == code, result.output
    lines = result.stderr.strip().splitlines()
    assert result.stdout == ""
    assert words in lines[-1], result.stderr
    assert [line for line in lines if line and not line.startswith(("Usage:", "Try "))] == lines[-1:]
    assert "Traceback" not in result.output


def write(folder: Path) -> None:
    """X.npy, y.npy, Q.npy, yq.npy, both.npz, packed.npz, sparse.npz, and a model of 12 bits."""
    import scipy.sparse as sp

    rows, labels = X[:N], Y[:N]
    np.save(folder / "X.npy", rows)
    np.save(folder / "y.npy", labels)
    np.save(folder / "Q.npy", X[N : N + 40])
    np.save(folder / "yq.npy", Y[N : N + 40])
    np.savez(folder / "both.npz", X=rows, y=labels)
    np.savez_compressed(folder / "packed.npz", X=np.asfortranarray(rows))
    sp.save_npz(folder / "sparse.npz", sp.csr_array(rows))
    LSH(n_bits=12, random_state=0).fit(rows).save(folder / "model")


def write_parquet(folder: Path) -> None:
    """columns.parquet, lists.parquet, ragged.parquet; skips where pyarrow is missing."""
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    rows = X[:N]
    columns = {f"pixel {i}": rows[:, i] for i in range(64)}
    parquet.write_table(arrow.table(columns), folder / "columns.parquet", row_group_size=70)
    fixed = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.ravel()), 64)
    names = arrow.array([f"digit {label}" for label in Y[:N]])
    parquet.write_table(arrow.table({"name": names, "row": fixed}), folder / "lists.parquet", row_group_size=110)
    ragged = arrow.array([[1.0, 2.0], [3.0]])
    parquet.write_table(arrow.table({"row": ragged}), folder / "ragged.parquet")
