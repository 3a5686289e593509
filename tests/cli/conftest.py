"""A folder with files of digits, written once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli import files


@pytest.fixture(scope="session")
def _written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    files.write(folder)
    return folder


@pytest.fixture
def folder(_written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of digits and a model in the current folder, free to be changed."""
    shutil.copytree(_written, tmp_path / "digits")
    monkeypatch.chdir(tmp_path / "digits")
    return tmp_path / "digits"
