"""MNIST: the order of its parts, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets import DataError
from hashlearn.experiments.datasets.images import Mnist
from tests.experiments.datasets.written import mnist_files


def test_training_part_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mnist, "checksums", mnist_files(folder, n_train=6, n_test=4))
    data = datasets.load("mnist")
    assert data.X.shape == (10, 784)
    assert data.X.dtype == np.float32
    assert data.y.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]
    assert data.is_query is not None
    assert data.is_query.tolist() == [False] * 6 + [True] * 4
    assert data.images is not None
    assert data.images.shape == (10, 28, 28)
    assert np.array_equal(data.images[0].ravel(), np.random.default_rng(0).integers(0, 256, (6, 28, 28))[0].ravel())
    assert np.array_equal(np.rint(data.X * 255).astype(np.uint8), data.images.reshape(10, -1))
    assert [file.path for file in data.provenance.files] == [f"mnist/{name}" for name in Mnist.checksums]


def test_damaged_file_names_itself_and_its_checksum(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mnist, "checksums", mnist_files(folder))
    path = folder / "mnist" / next(iter(Mnist.checksums))
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="wrong checksum") as caught:
        datasets.load("mnist")
    assert str(path) in str(caught.value)
