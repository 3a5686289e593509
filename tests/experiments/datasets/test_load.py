"""Loading by name: names, suggestions, what is known, and what a data set promises."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets import DATASETS, DataError, DataSet, MissingDataError, Provenance
from hashlearn.experiments.datasets.images import Mnist
from tests.experiments.datasets.written import mnist_files


def test_digits_are_always_there(folder: Path) -> None:
    data = datasets.load("digits")
    assert data.X.shape == (1797, 64)
    assert (data.X.dtype, data.y.dtype, data.images.dtype) == (np.float32, np.int64, np.uint8)
    assert (data.X.min(), data.X.max()) == (0.0, 1.0)
    assert data.class_names == tuple("0123456789")
    assert data.is_query is None
    assert np.array_equal(data.images.reshape(len(data), -1) / np.float32(255), data.X)
    assert repr(data) == "<DataSet digits: 1,797 × 64 pixels, 10 classes>"


def test_provenance_is_plain_json(folder: Path) -> None:
    provenance = json.loads(json.dumps(dataclasses.asdict(datasets.load("digits").provenance)))
    assert provenance["features"]["name"] == "pixels"
    assert len(provenance["files"][0]["sha256"]) == 64
    assert str(Path.home()) not in json.dumps(provenance)


@pytest.mark.parametrize(("name", "near"), [("minst", "mnist"), ("MNIST", "mnist"), ("cifar-10", "cifar10")])
def test_unknown_name_suggests_the_nearest(folder: Path, name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"unknown data set '{name}'; did you mean '{near}'"):
        datasets.load(name)


def test_unknown_name_without_a_near_one_lists_all(folder: Path) -> None:
    np.savez(folder / "mine.npz", X=np.eye(2), y=[0, 1])
    with pytest.raises(ValueError, match=r"Known: mnist, cifar10, digits, mine, or"):
        datasets.load("zzzzzz")


def test_unknown_features_suggest_the_nearest(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"features of cifar10 must be one of gist, hog, pixels, got 'gits'; did you"):
        datasets.load("cifar10", features="gits")
    with pytest.raises(ValueError, match=r"features of digits must be one of pixels, got 3"):
        datasets.load("digits", features=3)  # type: ignore[arg-type]


def test_known_lists_all_with_what_is_missing(folder: Path) -> None:
    np.savez(folder / "mine.npz", X=np.eye(3), y=[0, 1, 2])
    found = {known.name: known for known in datasets.known()}
    assert list(found) == ["mnist", "cifar10", "digits", "mine"]
    assert found["digits"].present
    assert found["mine"].present
    assert len(found["mnist"].missing) == 4
    assert len(found["cifar10"].missing) == 6
    assert found["mnist"].folder == folder


def test_known_sees_what_is_present(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mnist, "checksums", mnist_files(folder))
    assert datasets.known()[0].present
    path = "mnist/t10k-images-idx3-ubyte.gz"
    (folder / path).unlink()
    assert datasets.known()[0].missing == (path,)


def test_folder_that_is_not_there_is_not_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASHLEARN_DATA", str(folder / "nowhere"))
    assert [known.name for known in datasets.known()] == list(DATASETS)
    with pytest.raises(MissingDataError, match=r"gone\.npz: no such file"):
        datasets.load("gone.npz")


PROVENANCE = Provenance("here", "none", (), {"name": "given"})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"X": np.zeros(3, np.float32)}, r"X has shape \(3,\)"),
        ({"y": np.zeros(2, np.int64)}, "X has shape"),
        ({"y": np.array([0, 1, 2])}, "2 class names"),
        ({"y": np.array([0, -1, 1])}, "from -1 to 1"),
        ({"is_query": np.zeros(4, bool)}, "is_query has length 4"),
        ({"images": np.zeros((2, 5, 5), np.uint8)}, "images has length 2"),
        ({"X": np.zeros((0, 4), np.float32), "y": np.zeros(0, np.int64)}, "no samples"),
    ],
)
def test_a_data_set_that_does_not_fit_together_is_refused(changed: dict[str, np.ndarray], said: str) -> None:
    parts = {
        "name": "n", "features": "given", "X": np.zeros((3, 4), np.float32), "y": np.array([0, 1, 0]),
        "class_names": ("a", "b"), "is_query": None, "images": None, "provenance": PROVENANCE,
    }  # fmt: skip
    assert len(DataSet(**parts)) == 3
    with pytest.raises(DataError, match=said):
        DataSet(**(parts | changed))
