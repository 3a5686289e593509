"""Features that no hasher can learn from or encode, and odd ones that every hasher must take: the whole registry."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from hashlearn.hashers import HASHERS
from tests.persistence.models import QUICK, TEST, TRAIN, X, Y, fitted, unfitted

CALLS = ("encode", "transform", "decision_function")
every_hasher = pytest.mark.parametrize("name", HASHERS)


def spoiled(value: float, rows: Any = TRAIN) -> np.ndarray:
    changed = X[rows].copy()
    changed[7, 11] = value
    return changed


@every_hasher
def test_wrong_shapes_and_objects_are_refused(name: str) -> None:
    words = np.full((120, 64), "a", dtype=object)
    for bad, message in (
        (X[0], "2D array"),
        (X[:120].reshape(120, 8, 8), r"dim 3|3 dimensions|dim=3"),
        (words, "no numbers in column 0"),
        (X[TRAIN] + 1j, "Complex data not supported"),
        (np.zeros((120, 0)), "0 feature"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            unfitted(name).fit(bad, Y[TRAIN])
        with pytest.raises((ValueError, TypeError), match=message):
            fitted(name).encode(bad)
    with pytest.raises(ValueError, match="0 sample"):
        unfitted(name).fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match=r"63 features, but .* is expecting 64"):
        fitted(name).encode(X[TEST][:, :63])


@every_hasher
def test_an_empty_batch_has_no_codes(name: str) -> None:
    hasher = fitted(name)
    for empty in (X[:0], X[:0].astype(np.float32), sp.csr_array(X[:0]), [], pd.Series([], dtype=object)):
        found = [getattr(hasher, call)(empty) for call in CALLS]
        assert [part.shape for part in found] == [(0, 2), (0, 11), (0, 11)]
        assert [part.dtype.kind for part in found] == ["u", "u", "f"]
    with pytest.raises(ValueError, match="has 63 features, but"):
        hasher.encode(X[:0, :63])


@every_hasher
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e15])
def test_tiny_and_large_units_give_finite_margins(name: str, scale: float) -> None:
    rows = np.random.default_rng(0).standard_normal((40, 6)) * scale
    hasher = HASHERS[name](4, **QUICK.get(name, {})).set_params(random_state=0).fit(rows, np.arange(40) % 3)
    assert np.isfinite(hasher.decision_function(rows)).all()


@every_hasher
def test_what_would_overflow_is_refused(name: str) -> None:
    for size in (1e200, -1e200):
        with pytest.raises(ValueError, match=r"X has an entry of size 1e\+200, whose square overflows"):
            unfitted(name).fit(spoiled(size), Y[TRAIN])
        with pytest.raises(ValueError, match="whose square overflows"):
            fitted(name).encode(spoiled(size, TEST))


@every_hasher
@pytest.mark.parametrize("data", ["constant", "zero", "duplicates", "two rows"])
def test_features_that_tell_nothing_do_not_crash(name: str, data: str) -> None:
    rows = {
        "constant": np.ones((40, 6)),
        "zero": np.zeros((40, 6)),
        "duplicates": np.tile(X[:4, 20:26], (10, 1)),
        "two rows": np.repeat(X[:2, 20:26], 20, axis=0),
    }[data]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Liblinear failed|all 40 rows of X are equal")
        hasher = HASHERS[name](4, **QUICK.get(name, {})).set_params(random_state=0).fit(rows, np.arange(40) % 3)
    assert np.isfinite(hasher.decision_function(rows)).all()
    codes = hasher.encode(rows)
    assert len(np.unique(codes, axis=0)) <= len(np.unique(rows, axis=0))  # equal rows, equal codes


ONE_PROCESS = """
import hashlib, json, sys
from hashlearn.hashers import HASHERS
from tests.faults.test_features import digest
print(json.dumps({name: digest(name, int(sys.argv[1]), int(sys.argv[2])) for name in HASHERS}))
"""


def digest(name: str, seed: int, n_jobs: int) -> str:
    """Of the codes that a hasher gives."""
    hasher = unfitted(name, random_state=seed)
    if "n_jobs" in hasher.get_params():
        hasher.set_params(n_jobs=n_jobs)
    return hashlib.sha256(hasher.fit(X[TRAIN], Y[TRAIN]).encode(X[TEST]).tobytes()).hexdigest()


def test_seeds_decide_whatever_the_jobs_threads_and_processes() -> None:
    found = []
    for n_jobs, threads in ((1, 1), (2, 3)):  # here, in the tests' own process, all cores are a third way
        environment = {**os.environ, "HASHLEARN_NUM_THREADS": str(threads), "PYTHONHASHSEED": str(threads)}
        environment["PYTHONPATH"] = os.getcwd()
        command = [sys.executable, "-c", ONE_PROCESS, "0", str(n_jobs)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100, env=environment)
        found.append(json.loads(done.stdout))
    here = {name: digest(name, 0, 2) for name in HASHERS}
    assert found[0] == found[1] == here
    others = {name for name in HASHERS if digest(name, 1, 1) != here[name]}
    assert {"lsh", "itq"} <= others  # and another seed is another hasher
