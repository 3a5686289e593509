"""CIFAR-10: the order of pixels and parts, the archive, and what is refused."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from hashlearn.experiments import datasets
from hashlearn.experiments.datasets import DataError, MissingDataError, cifar10
from hashlearn.experiments.datasets.files import CanonicalFile
from tests.experiments.datasets.written import canonical, cifar_batches


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
    monkeypatch.setattr(cifar10, "FILES", tuple(canonical(folder, name, data) for name, data in content.items()))
    return content


def packed(folder: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes]) -> CanonicalFile:
    """Instead of the six files, the archive of ``members``."""
    for file in cifar10.FILES:
        (folder / file.path).unlink()
    known = canonical(folder, "cifar-10-binary.tar.gz", archive(members))
    monkeypatch.setattr(cifar10, "ARCHIVE", known)
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
    monkeypatch.setattr(datasets.Gist, "compute", None)
    again = datasets.load("cifar10")
    assert np.array_equal(again.X, data.X)
    assert again.provenance == data.provenance
    assert len(list((folder / "features").glob("cifar10-gist-*.npy"))) == 1


def test_archive_is_unpacked(batches: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = datasets.load("cifar10", "pixels")
    known = packed(folder, monkeypatch, {**batches, "../outside.txt": b"x", "cifar-10-batches-bin/readme.html": b"x"})
    assert datasets.known()[1].present
    assert np.array_equal(datasets.load("cifar10", "pixels").X, whole.X)
    assert sorted(path.name for path in (folder / "cifar-10-batches-bin").iterdir()) == sorted(
        name.rpartition("/")[2] for name in batches
    )
    assert (folder / known.path).is_file()  # it was the user's
    assert not (folder.parent / "outside.txt").exists()


def test_archive_with_a_file_missing(batches: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = list(batches)[-1]
    packed(folder, monkeypatch, {name: content for name, content in batches.items() if name != last})
    with pytest.raises(DataError, match="test_batch") as caught:
        datasets.load("cifar10")
    assert "cifar-10-binary.tar.gz" in str(caught.value)


def test_half_an_archive(batches: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = packed(folder, monkeypatch, batches)
    path = folder / known.path
    path.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(DataError, match=r"cifar-10-binary\.tar\.gz: half-downloaded"):
        datasets.load("cifar10")
    cut = canonical(folder, known.path, path.read_bytes())
    monkeypatch.setattr(cifar10, "ARCHIVE", cut)
    with pytest.raises(DataError, match="cannot be unpacked"):
        datasets.load("cifar10")
    assert not list(folder.rglob("*.part"))


def test_wrong_file_is_refused(batches: dict[str, bytes], folder: Path) -> None:
    name = list(batches)[2]
    (folder / name).write_bytes(batches[name][::-1])
    with pytest.raises(DataError, match=r"data_batch_3\.bin: wrong checksum"):
        datasets.load("cifar10")


def test_file_of_another_layout_is_refused(
    batches: dict[str, bytes], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = canonical(folder, cifar10.FILES[0].path, bytes(3074))
    monkeypatch.setattr(cifar10, "FILES", (odd, *cifar10.FILES[1:]))
    with pytest.raises(DataError, match="3,074 bytes are not a whole number of images of 3073 bytes"):
        datasets.load("cifar10")


def test_offline_error_names_archive_and_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive_only = CanonicalFile(cifar10.ARCHIVE.path, cifar10.ARCHIVE.size, cifar10.ARCHIVE.checksum)
    monkeypatch.setattr(cifar10, "ARCHIVE", archive_only)
    with pytest.raises(MissingDataError) as caught:
        datasets.load("cifar10")
    message = str(caught.value)
    assert "md5 c32a1d4ab5d03f1284b67883e8d87530" in message
    for file in cifar10.FILES:
        assert str(folder / file.path) in message
        assert file.checksum.partition(":")[2] in message
