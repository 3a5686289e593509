"""Rows that `encode`, `transform` and `decision_function` refuse while they are at it, panel by panel.

Rows are looked at just before their margins are taken, so these tests place one bad entry anywhere and ask for the very
error that a look at all rows beforehand gives, and for the very codes where nothing is wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
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
CALLS = ("encode", "transform", "decision_function")
PLACES = [(0, 0), (0, D - 1), (PANEL_ROWS - 1, 2), (PANEL_ROWS, 0), (N - 1, 0), (N - 1, D - 1)]
FORMS = {
    "float32": lambda A: A.astype(np.float32),
    "float64": lambda A: A,
    "fortran": np.asfortranarray,
    "fortran float32": lambda A: np.asfortranarray(A, dtype=np.float32),
    "strided": lambda A: np.repeat(np.repeat(A, 2, axis=0), 3, axis=1)[::2, ::3],
    "read-only": lambda A: _read_only(A.astype(np.float32)),
    "list": lambda A: A.tolist(),
}


def _read_only(A: Any) -> Any:
    A.flags.writeable = False
    return A


HASHERS = {
    "ITQ": ITQ(L, random_state=0).fit(X),
    "LSH": LSH(L, random_state=0).fit(X),
    "linear ridge": TwoStepHasher(L, hash_function="linear_ridge", random_state=0).fit(X, Y),
}


def refusal(call: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    with pytest.raises(ValueError, match="X") as caught:
        call(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("entry", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_wherever_they_are(entry: float, form: str, call: str) -> None:
    for row, column in PLACES:
        A = X.copy()
        A[row, column] = entry
        rows = FORMS[form](A)
        for hasher in (HASHERS["ITQ"], HASHERS["linear ridge"]):
            what = "NaN" if np.isnan(entry) else str(entry).replace("inf", "infinity")
            wanted = f"X contains {what} at row {row}, column {column}; features must be finite numbers"
            assert refusal(getattr(hasher, call), rows) == wanted


def test_the_error_names_the_worst_of_all_rows_not_the_first_seen() -> None:
    A = X.copy()
    A[0, 0], A[N - 1, 1] = 2e18, -7e19
    assert "size 7e+19" in refusal(HASHERS["LSH"].encode, A)
    A[PANEL_ROWS, 2] = np.inf
    assert "infinity" in refusal(HASHERS["LSH"].encode, A)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("entry", [np.nan, np.inf, 2e18])
def test_sparse_rows_are_refused(entry: float, kind: Any) -> None:
    A = X.copy()
    A[N - 1, 3] = entry
    place = f"at row {N - 1}, column 3"
    words = {"nan": f"NaN {place}", "inf": f"infinity {place}"}.get(str(entry), "size 2e")
    for call in CALLS:
        assert words in refusal(getattr(HASHERS["LSH"], call), kind(A))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_entries_allowed_are_no_error(dtype: Any) -> None:
    A = X.astype(dtype)
    A[:, 1] = 9e17
    margins = HASHERS["LSH"].decision_function(A)
    assert np.isfinite(margins).all()
    np.testing.assert_array_equal(HASHERS["LSH"].transform(A), margins >= 0)


def test_finite_rows_whose_margins_overflow_have_the_bits_they_had() -> None:
    hasher = LSH(L, random_state=0).fit(X)
    hasher.hash_functions_.weights *= 1e22
    A = X.astype(np.float32) * np.float32(1e17)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        before = hasher.hash_functions_.decision_function(hasher._validated(A, reset=False))
        margins, bits, packed = hasher.decision_function(A), hasher.transform(A), hasher.encode(A)
    assert (np.abs(before) == np.finfo(np.float32).max).any()
    np.testing.assert_array_equal(margins, before)
    np.testing.assert_array_equal(before >= 0, hasher.decision_function(A.astype(np.float64)) >= 0)
    np.testing.assert_array_equal(bits, before >= 0)
    np.testing.assert_array_equal(packed, pack_bits(bits))


def test_tasks_of_several_panels_give_every_row_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    n = (PANELS_PER_TASK * TASKS + 1) * PANEL_ROWS // 2 + 11
    A = np.random.default_rng(1).standard_normal((n, D)).astype(np.float32)
    for name in ("ITQ", "linear ridge"):
        hasher = HASHERS[name]
        whole = hasher.encode(A)
        cuts = [0, 1, PANEL_ROWS + 3, n // 3, n - 5, n]
        parts = [hasher.encode(A[a:b]) for a, b in pairwise(cuts)]
        np.testing.assert_array_equal(np.vstack(parts), whole)
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", "1")
        np.testing.assert_array_equal(hasher.encode(np.asfortranarray(A)), whole)
        monkeypatch.delenv("HASHLEARN_NUM_THREADS")
        A[n - 7, 4] = np.nan
        assert "NaN" in refusal(hasher.encode, A)
        A[n - 7, 4] = 0.5
