"""Importing is light: heavy packages are loaded where they are used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "dask", "matplotlib", "pandas", "faiss", "numba", "sklearn"}


def loaded_by(statement: str) -> set[str]:
    """The top-level modules in a fresh interpreter after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_import_hashlearn_is_light() -> None:
    modules = loaded_by("import hashlearn")
    assert "hashlearn" in modules
    assert not modules & HEAVY


def test_import_of_the_command_line_is_lighter_still() -> None:
    modules = loaded_by("import hashlearn.cli")
    assert "click" in modules
    assert not modules & (HEAVY | {"numpy", "scipy", "tqdm"})


def test_bqp_leaves_the_other_packages_alone() -> None:
    modules = loaded_by("from hashlearn import bqp; bqp.solve")
    assert not modules & (HEAVY - {"numba"})


def test_unknown_attribute_is_an_attribute_error() -> None:
    import hashlearn

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hashlearn.nothing  # noqa: B018


def test_doctests_are_collected_without_pytorch() -> None:
    """A finder hides PyTorch, as if it were not installed."""
    code = """
import sys
from importlib.machinery import PathFinder

import pytest

class WithoutTorch(PathFinder):
    @classmethod
    def find_spec(cls, name, *arguments):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, *arguments)

sys.meta_path = [WithoutTorch if finder is PathFinder else finder for finder in sys.meta_path]
sys.exit(pytest.main(["--collect-only", "-p", "no:cacheprovider", "src/hashlearn/bqp", "src/hashlearn/linalg"]))
"""
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "src/hashlearn/bqp" in done.stdout
    assert "torch" not in done.stdout
