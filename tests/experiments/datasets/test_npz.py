"""Any ``.npz`` with X and y: what is read, in which order, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets import DataError

X = np.arange(12, dtype=np.float16).reshape(6, 2)
Y = np.array([2, 0, 1, 2, 0, 1])


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "mine.npz"
    np.savez(path, **arrays)
    return path


def test_stem_path_and_file_name_are_the_same_data_set(folder: Path) -> None:
    path = save(folder, X=X, y=Y, names=np.array(["a", "b", "c"]))
    for name in ("mine", "mine.npz", str(path), path):
        data = datasets.load(name)
        assert data.name == "mine"
        assert data.features == "given"
        assert data.class_names == ("a", "b", "c")
        assert np.array_equal(data.X, X.astype(np.float32))
        assert (data.X.dtype, data.y.dtype) == (np.float32, np.int64)
        assert data.y.tolist() == Y.tolist()
        assert data.is_query is None
        assert data.images is None
    assert str(folder) not in repr(data.provenance)


def test_queries_come_last_and_rows_keep_their_labels(folder: Path) -> None:
    split = np.array(["test", "train", "val", "test", "train", "val"])
    data = datasets.load(save(folder, X=X, y=Y, split=split))
    assert data.is_query is not None
    assert data.is_query.tolist() == [False] * 4 + [True] * 2
    assert data.X[:, 0].tolist() == [2, 4, 8, 10, 0, 6]
    assert data.y.tolist() == [0, 1, 0, 1, 2, 2]


def test_split_without_test_marks_no_queries(folder: Path) -> None:
    assert datasets.load(save(folder, X=X, y=Y, split=np.array(["train"] * 6))).is_query is None


@pytest.mark.parametrize(
    ("y", "names", "labels"),
    [
        (np.array([30, 10, 20, 30, 10, 20]), ("10", "20", "30"), [2, 0, 1, 2, 0, 1]),
        (np.array(["cat", "ape", "bee", "cat", "ape", "bee"]), ("ape", "bee", "cat"), [2, 0, 1, 2, 0, 1]),
        (np.array([b"b", b"a", b"a", b"b", b"a", b"a"]), ("a", "b"), [1, 0, 0, 1, 0, 0]),
        (np.array([-1.0, 1, 1, -1, 1, 1]), ("-1", "1"), [0, 1, 1, 0, 1, 1]),
        (np.array([True, False, False, True, True, True]).astype(np.uint8), ("0", "1"), [1, 0, 0, 1, 1, 1]),
    ],
)
def test_labels_of_any_kind_become_indices(folder: Path, y: Any, names: tuple[str, ...], labels: list[int]) -> None:
    data = datasets.load(save(folder, X=X, y=y))
    assert data.class_names == names
    assert data.y.tolist() == labels


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"y": Y}, "has no X, only y"),
        ({"a": X}, "has no X, only a"),
        ({"X": X[0], "y": Y}, r"X has shape \(2,\)"),
        ({"X": X[:, :0], "y": Y}, r"X has shape \(6, 0\)"),
        ({"X": X.astype(str), "y": Y}, "expected numbers"),
        ({"X": X * 1j, "y": Y}, "complex"),
        ({"X": np.where(X == 3, np.nan, X), "y": Y}, "NaN"),
        ({"X": np.where(X == 3, 1e300, X.astype(float)), "y": Y}, "too large for float32"),
        ({"X": X, "y": Y[:5]}, r"y has shape \(5,\), expected \(6,\)"),
        ({"X": X, "y": np.eye(6)}, r"y has shape \(6, 6\)"),
        ({"X": X, "y": Y + 0.5}, "expected whole numbers or strings"),
        ({"X": X, "y": np.array([0, 1, 2, np.nan, 0, 1])}, "expected whole numbers or strings"),
        ({"X": X, "y": np.array([0, 1, 2, np.inf, 0, 1])}, "expected whole numbers or strings"),
        ({"X": X, "y": np.array([0, 1, 2, 1e300, 0, 1])}, "expected whole numbers or strings"),
        ({"X": X, "y": Y, "names": np.array(["a", "b"])}, "labels run from 0 to 2, but there are 2 class names"),
        ({"X": X, "y": Y - 1, "names": np.array(["a", "b", "c"])}, "labels run from -1"),
        ({"X": X, "y": Y, "names": np.array([["a"]])}, "names has shape"),
        ({"X": X, "y": Y.astype(str), "names": np.array(["a", "b", "c"])}, "y holds strings although"),
        ({"X": X, "y": Y, "split": np.array(["test"])}, r"split has shape \(1,\)"),
        ({"X": X[:0], "y": Y[:0]}, "no samples"),
    ],
)
def test_what_is_not_a_data_set_is_refused(folder: Path, arrays: dict[str, Any], said: str) -> None:
    path = save(folder, **arrays)
    with pytest.raises(DataError, match=said) as caught:
        datasets.load(path)
    assert "mine" in str(caught.value)


def test_nothing_is_unpickled(folder: Path) -> None:
    objects = np.empty(6, object)
    objects[:] = [print] * 6
    path = folder / "mine.npz"
    np.savez(path, X=X, y=objects)
    with pytest.raises(DataError, match="Python objects"):
        datasets.load("mine")


def test_other_features_are_refused(folder: Path) -> None:
    save(folder, X=X, y=Y)
    with pytest.raises(ValueError, match=r"features of mine\.npz must be 'given' or None, got 'gist'"):
        datasets.load("mine", "gist")
    assert datasets.load("mine", "given").features == "given"


def test_a_path_that_is_no_npz_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"path to an \.npz, \.npy, \.parquet file, got 'some/where'"):
        datasets.load("some/where")
