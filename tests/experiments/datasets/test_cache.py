"""Cached features: computed once, told apart by versions and files, computed anew when damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hashlearn.experiments.datasets import SourceFile
from hashlearn.experiments.datasets.files import user_cache
from hashlearn.experiments.datasets.image_features import cached

FILES = (SourceFile("a", "00", 1), SourceFile("b", "11", 2))
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


class Counted:
    """Gives ROWS, and counts how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> np.ndarray:
        self.calls += 1
        return ROWS.copy()


def get(folder: Path, compute: Counted, version: int = 1, files: tuple[SourceFile, ...] = FILES) -> np.ndarray:
    return cached("test", {"name": "gist", "version": version}, files, (2, 3), compute)


def test_computed_once(folder: Path) -> None:
    compute = Counted()
    assert np.array_equal(get(folder, compute), ROWS)
    assert np.array_equal(get(folder, compute), ROWS)
    assert compute.calls == 1
    (kept,) = user_cache().iterdir()
    assert kept.name.startswith("test-gist-")


def test_order_of_files_does_not_matter_but_their_content_does(folder: Path) -> None:
    compute = Counted()
    get(folder, compute)
    get(folder, compute, files=FILES[::-1])
    assert compute.calls == 1
    get(folder, compute, files=(FILES[0], SourceFile("b", "12", 2)))
    assert compute.calls == 2


def test_versions_are_told_apart(folder: Path) -> None:
    compute = Counted()
    for version in (1, 2, 1):
        get(folder, compute, version)
    assert compute.calls == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "shape", "type", "text"])
def test_damaged_file_is_computed_anew(folder: Path, damage: str) -> None:
    compute = Counted()
    get(folder, compute)
    (path,) = user_cache().iterdir()
    if damage in ("shape", "type"):
        np.save(path, ROWS[:1] if damage == "shape" else ROWS.astype(float))
    else:
        path.write_bytes({"cut": path.read_bytes()[:-5], "empty": b"", "text": b"nonsense"}[damage])
    assert np.array_equal(get(folder, compute), ROWS)
    assert compute.calls == 2
    get(folder, compute)
    assert compute.calls == 2


def test_a_cache_that_cannot_be_written_is_done_without(folder: Path) -> None:
    user_cache().parent.mkdir()
    user_cache().write_text("a file, so that no folder of this name can be made")
    compute = Counted()
    assert np.array_equal(get(folder, compute), ROWS)
    assert np.array_equal(get(folder, compute), ROWS)
    assert compute.calls == 2
