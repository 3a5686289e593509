"""60,000 rows with 2 GB of address space: done within it, or refused, never a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hashlearn.hash_functions import RBFSVM, KernelRidge, kernel_method

resource = pytest.importorskip("resource", reason="needs limits on the address space")

N = 60_000
COMMAND = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
from hashlearn.cli import main
main(sys.argv[1:])
"""
GRAM = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
import numpy as np
from hashlearn import TwoStepHasher
from hashlearn.hash_functions import KernelRidge
X = np.random.default_rng(0).standard_normal((60_000, 4))
try:
    TwoStepHasher(2, solver="spectral", hash_function=KernelRidge(max_gram_rows=10**6)).fit(X, np.arange(60_000) % 2)
except MemoryError as error:
    print("refused", "max_gram_rows=11585 or less" in str(error))
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


def test_a_gram_matrix_that_was_asked_for_and_does_not_fit_is_refused() -> None:
    done = subprocess.run([sys.executable, "-c", GRAM], capture_output=True, text=True, timeout=300)
    assert (done.stdout.split(), done.returncode) == (["refused", "True"], 0), done.stderr


def test_blocks_one_after_another_give_the_same_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows, codes = rng.standard_normal((3000, 5)), np.where(rng.random((3000, 3)) < 0.5, 1, -1).astype(np.int8)
    for kind in (KernelRidge(max_gram_rows=100, n_landmarks=80), RBFSVM(max_gram_rows=100, n_landmarks=80)):
        large = kind.fit(rows, codes, np.random.default_rng(1)).decision_function(rows)
        with monkeypatch.context() as patch:
            patch.setattr(kernel_method, "memory_share", lambda: 10_000)
            small = kind.fit(rows, codes, np.random.default_rng(1)).decision_function(rows)
        np.testing.assert_array_equal(small, large)
