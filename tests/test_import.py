"""Importing is light: heavy packages are loaded where they are used."""

from __future__ import annotations

import subprocess
import sys

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
