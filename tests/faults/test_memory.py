"""60,000 rows with 2 GB of address space: done within it, or refused, never a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

resource = pytest.importorskip("resource", reason="needs limits on the address space")

N = 60_000
COMMAND = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
from hashlearn.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten clusters in 64 dimensions."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("sixty")
    labels = rng.integers(10, size=N)
    rows = 2.0 * rng.standard_normal((10, 64))[labels] + rng.standard_normal((N, 64))
    np.save(folder / "X.npy", rows.astype(np.float32))
    np.save(folder / "y.npy", labels)
    return folder


def limited(folder: Path, *arguments: str) -> dict:
    command = [sys.executable, "-c", COMMAND, *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_sixty_thousand_rows_are_learned_encoded_and_searched_within_two_gigabytes(folder: Path) -> None:
    """The default hash function takes a minute; HASHLEARN_SLOW=1 tries it."""
    slow = os.environ.get("HASHLEARN_SLOW") == "1"
    function = [] if slow else ["--hash-function", "linear_ridge"]
    found = limited(folder, "fit", "X.npy", "--labels", "y.npy", "-o", "model", "--bits", "8", *function)
    assert found["n_samples"] == N
    assert limited(folder, "encode", "model", "X.npy", "-o", "codes.npy")["rows"] == N
    np.save(folder / "Q.npy", np.load(folder / "X.npy")[:20])
    near = limited(folder, "search", "model", "--database-codes", "codes.npy", "--queries", "Q.npy", "-k", "5")
    labels = np.load(folder / "y.npy")
    right = [labels[item["ids"]] == labels[item["query"]] for item in near["neighbors"]]
    assert np.mean(right) > 0.9
