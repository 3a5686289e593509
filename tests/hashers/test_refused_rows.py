"""Rows that hashers refuse to encode, the largest that they take, and rows of many panels."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hashlearn import TwoStepHasher
from hashlearn.bits import pack_bits
from hashlearn.hash_functions.fitted import PANEL_ROWS, PANELS_PER_TASK, TASKS
from hashlearn.hashers import ITQ, LSH

D, L = 6, 5
N = 3 * PANEL_ROWS + 7
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = RNG.integers(0, 4, N)
FORMS = {
    "float32": lambda A: A.astype(np.float32),
    "float64": lambda A: A,
    "fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "list": lambda A: A.tolist(),
    "sparse": sp.csr_array,
}


def with_entries(**entries: float) -> np.ndarray:
    """X with some entries replaced: first, last."""
    A = X.copy()
    for place, value in entries.items():
        A[{"first": (0, 0), "last": (N - 1, 1)}[place]] = value
    return A


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"last": np.nan}, f"X contains NaN at row {N - 1}, column 1; features must be finite numbers"),
        ({"first": -np.inf}, "X contains -infinity at row 0, column 0; features must be finite numbers"),
        ({"first": 2e18, "last": np.inf}, f"X contains infinity at row {N - 1}, column 1"),
        ({"first": 2e18, "last": -7e19}, r"X has an entry of size 7e\+19, whose square overflows"),
    ],
)
def test_the_worst_entry_is_named(entries: dict[str, float], words: str, form: str) -> None:
    rows = FORMS[form](with_entries(**entries))
    hasher = LSH(L, random_state=0).fit(X)
    for call in ("encode", "transform", "decision_function"):
        with pytest.raises(ValueError, match=words):
            getattr(hasher, call)(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_entries_allowed_are_no_error(dtype: Any) -> None:
    A = X.astype(dtype)
    A[:, 1] = 9e17
    hasher = LSH(L, random_state=0).fit(X)
    margins = hasher.decision_function(A)
    assert np.isfinite(margins).all()
    np.testing.assert_array_equal(hasher.transform(A), margins >= 0)


def test_finite_rows_whose_margins_overflow_have_the_bits_of_float64() -> None:
    hasher = LSH(L, random_state=0).fit(X)
    hasher.hash_functions_.weights *= 1e22
    A = X.astype(np.float32) * np.float32(1e17)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        margins, bits, packed = hasher.decision_function(A), hasher.transform(A), hasher.encode(A)
    assert (np.abs(margins) == np.finfo(np.float32).max).any()
    np.testing.assert_array_equal(margins >= 0, hasher.decision_function(A.astype(np.float64)) >= 0)
    np.testing.assert_array_equal(bits, margins >= 0)
    np.testing.assert_array_equal(packed, pack_bits(bits))


@pytest.mark.parametrize(
    "hasher", [ITQ(L, random_state=0), TwoStepHasher(L, hash_function="linear_ridge", random_state=0)]
)
def test_tasks_of_several_panels_give_every_row_its_own_code(hasher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n = (PANELS_PER_TASK * TASKS + 1) * PANEL_ROWS // 2 + 11
    A = np.random.default_rng(1).standard_normal((n, D)).astype(np.float32)
    whole = hasher.fit(X, Y).encode(A)
    cuts = [0, 1, PANEL_ROWS + 3, n // 3, n - 5, n]
    np.testing.assert_array_equal(np.vstack([hasher.encode(A[a:b]) for a, b in pairwise(cuts)]), whole)
    monkeypatch.setenv("HASHLEARN_NUM_THREADS", "1")
    np.testing.assert_array_equal(hasher.encode(np.asfortranarray(A)), whole)
