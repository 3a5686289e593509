"""CIFAR-10: the order of pixels and parts, the archive, and what is refused."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets import DataError, MissingDataError
from hashlearn.experiments.datasets.features import IMAGE_FEATURES
from hashlearn.experiments.datasets.files import PublishedFile, user_cache
from hashlearn.experiments.datasets.images import Cifar10
from tests.experiments.datasets.written import canonical, checksums, cifar_batches


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Six small files that pass for the canonical ones; they are in the data folder."""
    content = cifar_batches()
    files = [canonical(folder, name, data) for name, data in content.items()]
    monkeypatch.setattr(Cifar10, "checksums", checksums(files))
    return content


def packed(folder: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes]) -> PublishedFile:
    """Instead of the six files, the archive of ``members``."""
    for name in Cifar10.checksums:
        (folder / "cifar-10-batches-bin" / name).unlink()
    known = canonical(folder, "cifar-10-binary.tar.gz", archive(members), ("http://127.0.0.1:9/cifar",))
    monkeypatch.setattr(Cifar10, "archive", known)
    return known


def test_pixels_are_red_green_blue_row_by_row(batches: dict[str, bytes]) -> None:
    data = datasets.load("cifar10", "pixels")
    assert data.images is not None
    assert data.images.shape == (18, 32, 32, 3)
    first = np.frombuffer(next(iter(batches.values())), np.uint8)[1:3073]
    for channel in range(3):
        assert np.array_equal(data.images[0, :, :, channel].ravel(), first[1024 * channel : 1024 * (channel + 1)])
    assert data.X.shape == (18, 3072)
    assert data.X[0, 1] == np.float32(first[1024]) / np.float32(255)  # the second number: green of the first pixel


def test_test_batch_comes_last(batches: dict[str, bytes]) -> None:
    data = datasets.load("cifar10", "pixels")
    assert data.y.tolist() == [(f + i) % 10 for f in range(6) for i in range(3)]
    assert data.is_query is not None
    assert np.flatnonzero(data.is_query).tolist() == [15, 16, 17]
    assert data.class_names[3] == "cat"


def test_gist_is_the_default_and_is_computed_once(
    batches: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []
    data = datasets.load("cifar10", progress=lambda p: heard.append((p.stage, p.done, p.total)))
    assert data.X.shape == (18, 320)
    assert heard == [("GIST", 18, 18)]
    monkeypatch.setitem(IMAGE_FEATURES, "gist", IMAGE_FEATURES["gist"]._replace(compute=None))
    again = datasets.load("cifar10")
    assert np.array_equal(again.X, data.X)
    assert again.provenance == data.provenance
    assert len(list(user_cache().glob("cifar10-gist-*.npy"))) == 1


def test_archive_is_unpacked(batches: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = datasets.load("cifar10", "pixels")
    pytest.importorskip("pooch", reason="unpacking needs pooch")
    known = packed(folder, monkeypatch, {**batches, "../outside.txt": b"x", "cifar-10-batches-bin/readme.html": b"x"})
    assert datasets.known()[1].present
    assert np.array_equal(datasets.load("cifar10", "pixels").X, whole.X)
    assert sorted(path.name for path in (folder / "cifar-10-batches-bin").iterdir()) == sorted(
        name.rpartition("/")[2] for name in batches
    )
    assert (folder / known.path).is_file()
    assert not (folder.parent / "outside.txt").exists()


def test_half_an_archive(batches: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pooch", reason="unpacking needs pooch")
    path = folder / packed(folder, monkeypatch, batches).path
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(MissingDataError, match=r"cifar-10-binary\.tar\.gz is missing or differs"):
        datasets.load("cifar10")
    assert not (folder / "cifar-10-batches-bin" / "test_batch.bin").exists()


def test_wrong_file_is_refused(batches: dict[str, bytes], folder: Path) -> None:
    name = list(batches)[2]
    (folder / name).write_bytes(batches[name][::-1])
    with pytest.raises(DataError, match=r"data_batch_3\.bin: wrong checksum"):
        datasets.load("cifar10")


def test_offline_error_names_the_archive(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pooch", reason="downloads need pooch")
    monkeypatch.setattr(Cifar10, "archive", replace(Cifar10.archive, urls=("http://127.0.0.1:9/cifar",)))
    with pytest.raises(MissingDataError, match="md5:c32a1d4ab5d03f1284b67883e8d87530") as caught:
        datasets.load("cifar10")
    assert str(folder / Cifar10.archive.path) in str(caught.value)
    assert "http://127.0.0.1:9/cifar: " in str(caught.value)
