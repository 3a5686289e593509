"""Sparse npz files: CSR is read right; parts that do not fit are refused before scipy indexes with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn.files import open_rows

ROWS = sp.random_array((60, 8), density=0.4, rng=np.random.default_rng(0), format="csr")


def parts() -> dict[str, np.ndarray]:
    arrays = {name: getattr(ROWS, name) for name in ("data", "indices", "indptr")}
    return {**arrays, "shape": np.array(ROWS.shape), "format": np.array(b"csr")}


def placed(array: np.ndarray, place: Any, value: Any) -> np.ndarray:
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "f2", "i1", "b1"])
@pytest.mark.parametrize("index", ["i4", "i8", "u8"])
def test_every_dtype_is_read(tmp_path: Path, dtype: str, index: str) -> None:
    path = tmp_path / "x.npz"
    content = parts()
    content["data"] = (10.0 * content["data"]).astype(dtype)
    for name in ("indices", "indptr"):
        content[name] = content[name].astype(index)
    np.savez_compressed(path, **content)
    rows = open_rows(path).read()
    expected = ROWS.copy()
    expected.data = content["data"].astype(np.float64)
    np.testing.assert_array_equal(rows.toarray(), expected.toarray())
    assert rows.dtype == (np.float32 if dtype == "f4" else np.float64)


CASES: list[tuple[str, Any, str]] = [
    ("indices", lambda a: placed(a, 3, 2**30), "indices must lie from 0 to 7"),
    ("indices", lambda a: placed(a, 3, -1), "indices must lie from 0 to 7"),
    ("indices", lambda a: placed(a, 3, 8), "indices must lie from 0 to 7"),
    ("indices", lambda a: placed(a.astype("u8"), 3, 2**63), "indices must lie from 0 to 7"),
    ("indices", lambda a: a.astype(float), "indices must be integers"),
    ("indices", lambda a: a[:-1], "data must hold"),
    ("indptr", lambda a: placed(placed(a, slice(1, -1), 2**30), -1, 0), "indptr must go from 0"),
    ("indptr", lambda a: placed(a, 5, 0), "indptr must not decrease"),
    ("indptr", lambda a: placed(placed(a, slice(1, -2), 2**31 - 1), -2, -(2**31)), "indptr must not decrease"),
    ("indptr", lambda a: a[:-1], "indptr must have 61 entries, got 60"),
    ("shape", lambda a: np.array([60, 2**64 - 1], "u8"), "shape must be two whole numbers"),
    ("shape", lambda a: a[None], "shape must be two whole numbers"),
    ("shape", lambda a: np.zeros(1000, int), "shape must be two whole numbers"),
    ("shape", lambda a: np.array([2**40, 8]), "indptr must have 1099511627777 entries"),
    ("format", lambda a: np.array(b"coo"), "its format is 'coo'; save it as CSR"),
    ("format", lambda a: np.array([b"csr", b"csr"]), "its format is 'csr csr'; save it as CSR"),
    ("data", lambda a: a + 1j, "data holds complex numbers"),
]


@pytest.mark.parametrize(("part", "change", "words"), CASES)
def test_parts_that_do_not_fit_are_refused_by_name(tmp_path: Path, part: str, change: Any, words: str) -> None:
    path = tmp_path / "x.npz"
    content = parts()
    np.savez(path, **{**content, part: change(content[part])})
    with pytest.raises(ValueError, match=rf"x\.npz: cannot be read as a sparse matrix: .*{words}"):
        open_rows(path)


@pytest.mark.parametrize("layout", ["csc", "coo", "bsr", "dia"])
def test_other_formats_are_to_be_saved_as_csr(tmp_path: Path, layout: str) -> None:
    sp.save_npz(tmp_path / "x.npz", ROWS.asformat(layout))
    with pytest.raises(ValueError, match=rf"its format is '{layout}'; save it as CSR, scipy\.sparse\.save_npz"):
        open_rows(tmp_path / "x.npz")


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    content = parts()
    del content["indptr"]
    np.savez(tmp_path / "x.npz", **content)
    with pytest.raises(ValueError, match="must have the part 'indptr'"):
        open_rows(tmp_path / "x.npz")


def test_parquet_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(arrow.table([np.arange(5.0)] * 3, names=["a", "a", "b"]), path)
    with pytest.raises(ValueError, match=r"x\.parquet: has 2 columns named 'a'"):
        open_rows(path)
    assert open_rows(f"{path}::b").read().shape == (5, 1)
