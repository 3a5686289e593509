"""``hashlearn datasets``: the table, how to get the rest, and JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hashlearn.cli.experiments import datasets_command
from hashlearn.experiments.datasets.images import Mnist
from tests.experiments.datasets.written import mnist_files


def run(*arguments: str) -> str:
    outcome = CliRunner().invoke(datasets_command, arguments)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_table_shows_what_is_present(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mnist, "checksums", mnist_files(folder))
    np.savez(folder / "mine.npz", X=np.eye(1234), y=np.arange(1234))
    lines = run().splitlines()
    assert lines[0] == f"Data folder: {folder}"
    cells = {line.split()[0]: line.split()[1:] for line in lines[4:8]}
    assert cells["mnist"] == ["70,000", "yes", "pixels"]
    assert cells["cifar10"] == ["60,000", "no", "gist,", "hog,", "pixels"]
    assert cells["digits"] == ["1,797", "yes", "pixels"]
    assert cells["mine"] == ["–", "yes", "given"]


def test_rest_is_explained(folder: Path) -> None:
    _, _, rest = run().partition("How to get the rest\n")
    assert [line.split()[0] for line in rest.splitlines()] == ["mnist", "cifar10"]
    assert "mnist/train-images-idx3-ubyte.gz" in rest


def test_folder_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASHLEARN_DATA", str(folder / "nowhere"))
    assert run().startswith(f"Data folder: {folder / 'nowhere'} (not there yet)\n")


def test_json_is_one_object(folder: Path) -> None:
    report = json.loads(run("--json"))
    assert report["folder"] == str(folder)
    by_name = {entry["name"]: entry for entry in report["datasets"]}
    assert by_name["digits"]["present"] is True
    assert by_name["cifar10"]["present"] is False
    assert by_name["cifar10"]["features"] == ["gist", "hog", "pixels"]


def test_import_is_light() -> None:
    code = "import hashlearn.cli.experiments, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"numpy", "scipy", "tqdm", "hashlearn.experiments.datasets"} & set(done.stdout.split())
    code = "import hashlearn.experiments.datasets, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not {"torch", "sklearn", "skimage", "PIL", "pooch", "numba"} & set(done.stdout.split())
