"""Files of rows: every format gives the same rows, whatever part of them is asked for, and damage is found."""

from __future__ import annotations

import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn.files import RowSource, open_rows, read_labels

ROWS = np.random.default_rng(0).standard_normal((103, 7))


@pytest.fixture
def sources(tmp_path: Path) -> list[RowSource]:
    """The same rows in every format that can be read here."""
    np.save(tmp_path / "c.npy", ROWS)
    np.save(tmp_path / "f.npy", np.asfortranarray(ROWS))
    np.savez(tmp_path / "plain.npz", rows=ROWS, other=np.arange(3))
    np.savez_compressed(tmp_path / "packed.npz", rows=ROWS)
    np.savez(tmp_path / "columns.npz", np.asfortranarray(ROWS))
    names = ["c.npy", "f.npy", "plain.npz::rows", "packed.npz", "columns.npz"]
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        return [open_rows(f"{tmp_path}/{name}") for name in names]
    flat = pyarrow.array(ROWS.ravel())
    tables = {
        "columns": {f"c{i}": ROWS[:, i] for i in range(7)},
        "fixed": {"id": np.arange(103), "row": pyarrow.FixedSizeListArray.from_arrays(flat, 7)},
        "lists": {"row": pyarrow.ListArray.from_arrays(np.arange(0, 7 * 104, 7, dtype=np.int32), flat)},
    }
    for name, table in tables.items():
        parquet.write_table(pyarrow.table(table), tmp_path / f"{name}.parquet", row_group_size=10)
    return [open_rows(f"{tmp_path}/{name}") for name in [*names, *(f"{name}.parquet" for name in tables)]]


def test_any_part_in_any_batches(sources: list[RowSource]) -> None:
    assert len(sources) >= 5
    for source in sources:
        assert (source.n_rows, source.n_features) == (103, 7)
        np.testing.assert_array_equal(source.read(), ROWS)
        for size, first, last in ((1, 3, 9), (10, 0, 103), (16, 10, 60), (16, 11, 103), (500, 99, 100)):
            batches = list(source.batches(size, first, last))
            assert {len(batch) for batch in batches[:-1]} <= {size}
            np.testing.assert_array_equal(np.concatenate(batches), ROWS[first:last], err_msg=source.name)


def test_sparse_rows_stay_sparse(tmp_path: Path) -> None:
    wanted = sp.random_array((50, 9), density=0.2, rng=np.random.default_rng(0), format="csr")
    sp.save_npz(tmp_path / "rows.npz", wanted)
    parts = list(open_rows(tmp_path / "rows.npz").batches(20))
    assert all(sp.issparse(part) for part in parts)
    np.testing.assert_array_equal(sp.vstack(parts).toarray(), wanted.toarray())
    wanted.data[3] = np.inf
    sp.save_npz(tmp_path / "rows.npz", wanted)
    with pytest.raises(ValueError, match=r"contains infinity at row \d+, column \d"):
        list(open_rows(tmp_path / "rows.npz").batches(20))


def test_the_place_of_what_is_not_finite_is_told(sources: list[RowSource], tmp_path: Path) -> None:
    changed = ROWS.copy()
    changed[70, 2] = np.nan
    np.save(tmp_path / "nan.npy", changed)
    source = open_rows(tmp_path / "nan.npy")
    assert len(list(source.batches(10, 0, 70))) == 7
    with pytest.raises(ValueError, match="contains NaN at row 70, column 2"):
        list(source.batches(16, 5))


def test_nulls_and_lists_of_other_lengths_are_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    for column, words in (
        (arrow.array([[1.0, 2.0], [3.0, 4.0, 5.0], [6.0]]), "has a list of length 3 at row 1, and of 2 at row 0"),
        (arrow.array([[1.0, 2.0], None]), "has no value at row 1, column 'row'"),
        (arrow.array([[1.0, 2.0], [3.0, None]]), "has no value at row 1, column 'row'"),
        (arrow.array([1.0, None]), "has no value at row 1, column 'row'"),
    ):
        parquet.write_table(arrow.table({"row": column}), tmp_path / "rows.parquet")
        with pytest.raises(ValueError, match=words):
            open_rows(tmp_path / "rows.parquet").read()
    parquet.write_table(arrow.table({"label": ["a", None]}), tmp_path / "labels.parquet")
    with pytest.raises(ValueError, match="without a label"):
        read_labels(tmp_path / "labels.parquet")


def test_truncation_at_every_sixty_fourth_is_refused(tmp_path: Path, sources: list[RowSource]) -> None:
    for path in {source.path for source in sources}:
        whole = path.read_bytes()
        for part in range(64):
            cut = tmp_path / f"cut{path.suffix}"
            cut.write_bytes(whole[: len(whole) * part // 64])
            with pytest.raises((ValueError, OSError)):
                open_rows(f"{cut}::rows" if path.name == "plain.npz" else cut).read()


def test_headers_that_lie_are_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((1000, 7)))
    whole = (tmp_path / "rows.npy").read_bytes()
    lies = [f"({2**60}, 7)", f"({2**32}, {2**32})", "(-1000, 7)", f"(1000, {2**61})"]
    tracemalloc.start()
    try:
        for lie in lies:
            header = whole[:128].replace(b"(1000, 7)", lie.encode())
            header = header.replace(b" " * (len(header) - 128), b"", 1) if len(header) > 128 else header
            changed = header[:127].ljust(127) + b"\n" + whole[128:]
            (tmp_path / "lie.npy").write_bytes(changed)
            with zipfile.ZipFile(tmp_path / "lie.npz", "w") as archive:
                archive.writestr("rows.npy", changed)
            for name in ("lie.npy", "lie.npz"):
                with pytest.raises((ValueError, MemoryError), match=rf"{name}.*(cannot be read|does not fit)"):
                    open_rows(tmp_path / name).read()
        assert tracemalloc.get_traced_memory()[1] < 3e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_rows_are_picked_by_number(sources: list[RowSource], size: int, tmp_path: Path) -> None:
    sp.save_npz(tmp_path / "sparse.npz", sp.csr_array(ROWS))
    for wanted in ([], [0], [102], [9, 10, 11, 40, 99], range(103)):
        rows = np.array(wanted, np.int64)
        for source in [*sources, open_rows(tmp_path / "sparse.npz")]:
            batches = list(source.pick(rows, size))
            assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
            np.testing.assert_array_equal(np.concatenate([ROWS[:0], *batches]), ROWS[rows])


def test_only_row_groups_with_picked_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = pyarrow.table({f"c{i}": ROWS[:, i] for i in range(7)})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=10)
    source = open_rows(tmp_path / "rows.parquet")
    read: list[int] = []
    batches = parquet.ParquetFile.iter_batches

    def counted(file: Any, size: int, row_groups: list[int], **more: Any) -> Any:
        for group in row_groups:
            read.append(group)
            yield from batches(file, size, row_groups=[group], **more)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    rows = np.array([3, 5, 39, 40, 102])
    np.testing.assert_array_equal(np.concatenate(list(source.pick(rows, 2))), ROWS[rows])
    assert read == [0, 3, 4, 10]
