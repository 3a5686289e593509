"""MNIST and its IDX files: what is read, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets import DataError, mnist
from hashlearn.experiments.datasets.mnist import read_idx
from tests.experiments.datasets.written import canonical, idx, mnist_files


def test_training_part_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist, "FILES", mnist_files(folder, n_train=6, n_test=4))
    data = datasets.load("mnist")
    assert data.X.shape == (10, 784)
    assert data.X.dtype == np.float32
    assert data.y.tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]
    assert data.is_query is not None
    assert data.is_query.tolist() == [False] * 6 + [True] * 4
    assert data.images is not None
    assert data.images.shape == (10, 28, 28)
    assert np.array_equal(np.rint(data.X * 255).astype(np.uint8), data.images.reshape(10, -1))
    assert [file.path for file in data.provenance.files] == [file.path for file in mnist.FILES]


def test_images_without_labels_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = list(mnist_files(folder))
    files[1] = canonical(folder, files[1].path, idx(np.zeros(5)))
    monkeypatch.setattr(mnist, "FILES", tuple(files))
    with pytest.raises(DataError, match="6 training images, but 5 labels"):
        datasets.load("mnist")


def test_damaged_file_names_itself_and_its_checksum(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = mnist_files(folder)
    monkeypatch.setattr(mnist, "FILES", files)
    path = folder / files[0].path
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="wrong checksum") as caught:
        datasets.load("mnist")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("shape", [(3,), (2, 4, 5), (0, 4, 5)])
def test_idx_round_trip(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    (tmp_path / "a.gz").write_bytes(idx(array))
    read = read_idx(tmp_path / "a.gz", len(shape))
    assert read.shape == shape
    assert np.array_equal(read, array)


PLAIN = gzip.decompress(idx(np.arange(12).reshape(3, 4)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"\x00\x00\x0d" + PLAIN[3:]), "bad IDX header: starts with bytes 00 00 0d 02"),
        (gzip.compress(b"PK" + PLAIN[2:]), "expected 00 00 08 02"),
        (gzip.compress(PLAIN[:3] + b"\x01" + PLAIN[4:]), "00 00 08 01"),
        (gzip.compress(PLAIN[:7]), r"truncated inside its IDX header \(7 bytes\)"),
        (gzip.compress(PLAIN[:-2]), r"truncated: 10 of 12 entries of shape \(3, 4\)"),
        (gzip.compress(PLAIN + b"x"), "more entries"),
        (gzip.compress(PLAIN[:4] + b"\xff" * 8), "more than 2,147,483,648 entries"),
        (gzip.compress(b""), "truncated inside"),
        (gzip.compress(PLAIN)[:-9], "not a whole gzip file"),
        (PLAIN, "not a whole gzip file"),
        (gzip.compress(PLAIN)[:10] + b"\x00\xff\xff" + gzip.compress(PLAIN)[13:], "not a whole gzip file"),
    ],
    ids=["type", "magic", "dimensions", "header", "truncated", "longer", "absurd", "empty", "cut", "plain", "garbled"],
)
def test_bad_idx_names_the_file_and_what_is_wrong(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "bad.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said) as caught:
        read_idx(path, 2)
    assert str(caught.value).startswith(f"{path}: ")
