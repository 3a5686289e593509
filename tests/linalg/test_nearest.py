"""`nearest_rows` finds what sorting all distances finds, for arrays and tensors.

Rows are small integers: products are then exact, and ties are ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hashlearn.linalg import nearest
from hashlearn.linalg.nearest import nearest_rows


def integers(n: int, d: int = 5, most: int = 9, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, most + 1, (n, d)).astype(np.float32)


def sorted_rows(queries: np.ndarray, rows: np.ndarray, k: int, own: Any = None) -> np.ndarray:
    squares = np.square(queries[:, None, :].astype(np.float64) - rows).sum(axis=2)
    if own is not None:
        among = np.flatnonzero(np.asarray(own) >= 0)
        squares[among, np.asarray(own)[among]] = np.inf
    return np.argsort(squares, axis=1, kind="stable")[:, :k]


def as_array(rows: np.ndarray) -> Any:
    return rows


def as_tensor(rows: np.ndarray) -> Any:
    return pytest.importorskip("torch").from_numpy(rows)


@pytest.fixture(params=[as_array, as_tensor], ids=["array", "tensor"])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[False, True], ids=["default blocks", "small blocks"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        for name, value in (("QUERIES", 7), ("ROWS", 16), ("TENSOR_NUMBERS", (500, 500))):
            monkeypatch.setattr(nearest, name, value)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("most", [1, 9, 1000])
@pytest.mark.parametrize("k", [1, 10, 99])
def test_the_nearest_of_all_rows_but_itself(kind, k, most):
    rows = integers(100, most=most)
    own = np.arange(100)
    found = nearest_rows(kind(rows), kind(rows), k, own=own)
    assert (type(found), found.dtype) == (np.ndarray, np.int64)
    np.testing.assert_array_equal(found, sorted_rows(rows, rows, k, own))


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("n_queries", [1, 40])
def test_queries_that_are_not_among_the_rows(kind, n_queries):
    rows, queries = integers(60), integers(n_queries, seed=1)
    np.testing.assert_array_equal(nearest_rows(kind(queries), kind(rows), 60), sorted_rows(queries, rows, 60))


def test_some_queries_are_among_the_rows(kind):
    rows = integers(50)
    queries, own = np.vstack([rows[[7, 3]], integers(3, seed=1)]), np.array([7, 3, -1, -1, -1])
    found = nearest_rows(kind(queries), kind(rows), 49, own=own)
    np.testing.assert_array_equal(found, sorted_rows(queries, rows, 49, own))


@pytest.mark.usefixtures("_blocks")
def test_equal_rows_come_in_their_order(kind):
    rows = np.repeat(integers(6), 20, axis=0)
    np.testing.assert_array_equal(nearest_rows(kind(rows[:1]), kind(rows), 20)[0], np.arange(20))
    same = np.ones((90, 3), np.float32)
    expected = [[row for row in range(90) if row != own][:12] for own in range(90)]
    np.testing.assert_array_equal(nearest_rows(kind(same), kind(same), 12, own=np.arange(90)), expected)


def test_real_numbers_and_any_number_of_threads(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((700, 20)).astype(np.float32)
    answers = []
    for n_threads in ("1", "2", "3"):
        monkeypatch.setenv("HASHLEARN_NUM_THREADS", n_threads)
        answers.append(nearest_rows(rows, rows, 15, own=np.arange(700)))
    np.testing.assert_array_equal(answers[1], answers[0])
    np.testing.assert_array_equal(answers[2], answers[0])
    assert np.mean(answers[0] == sorted_rows(rows, rows, 15, np.arange(700))) > 0.999
