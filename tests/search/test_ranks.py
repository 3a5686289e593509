"""The worst rank of a row, whatever a search does with ties, against counting in a full table of distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hashlearn.bits import hamming_distances, unpack_signs
from hashlearn.search import HammingIndex, asymmetric_search
from hashlearn.search.ranks import QUERIES_AT_ONCE, worst_ranks
from tests.search.codes import random_codes

N, M = 300, 6  # codes, rows of each query


def rows_for(n_queries: int, n: int = N) -> np.ndarray:
    rng = np.random.default_rng(n_queries)
    return np.array([rng.choice(n, M, replace=False) for _ in range(n_queries)])


def counted(distances: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """How many distances are at most that of each row."""
    limits = np.take_along_axis(distances, rows, axis=1)
    return (distances[:, None, :] <= limits[:, :, None]).sum(axis=2)


@pytest.mark.parametrize("n_bits", [1, 5, 8, 13, 32, 64, 65, 130])
@pytest.mark.parametrize("n_queries", [1, QUERIES_AT_ONCE, QUERIES_AT_ONCE + 7])
def test_hamming_ranks_count_codes_that_are_at_least_as_near(n_bits: int, n_queries: int) -> None:
    codes, queries, rows = random_codes(N, n_bits), random_codes(n_queries, n_bits, seed=1), rows_for(n_queries)
    ranks = worst_ranks(rows, codes, n_bits, queries=queries)
    np.testing.assert_array_equal(ranks, counted(hamming_distances(queries, codes), rows))
    assert ranks.dtype == np.int64


@pytest.mark.parametrize("n_bits", [1, 5, 8, 13, 32, 64, 65, 130])
@pytest.mark.parametrize("n_queries", [1, QUERIES_AT_ONCE + 7])
def test_asymmetric_ranks_count_scores_that_are_at_least_as_high(n_bits: int, n_queries: int) -> None:
    codes, rows = random_codes(N, n_bits), rows_for(n_queries)
    margins = np.random.default_rng(n_bits).integers(-3, 4, (n_queries, n_bits))  # whole numbers: sums are exact
    scores = margins @ unpack_signs(codes, n_bits).T.astype(np.int64)
    np.testing.assert_array_equal(worst_ranks(rows, codes, n_bits, margins=margins), counted(-scores, rows))


def test_no_search_puts_a_row_behind_its_rank() -> None:
    codes, queries, rows = random_codes(N, 16), random_codes(20, 16, seed=1), rows_for(20)
    index = HammingIndex(16)
    index.add(codes)
    margins = np.random.default_rng(0).normal(size=(20, 16))
    for answer, ranks in (
        (index.search(queries, N), worst_ranks(rows, codes, 16, queries=queries)),
        (asymmetric_search(margins, codes, N), worst_ranks(rows, codes, 16, margins=margins)),
    ):
        places = np.argsort(answer.indices, axis=1)
        assert (np.take_along_axis(places, rows, axis=1) < ranks).all()


def test_ties_count_against_the_row() -> None:
    codes = np.zeros((7, 1), np.uint8)
    assert worst_ranks([[0, 6]], codes, 8, queries=codes[:1]).tolist() == [[7, 7]]
    assert worst_ranks([[0, 6]], codes, 8, margins=np.ones((1, 8))).tolist() == [[7, 7]]
    assert worst_ranks([[3]], codes, 8, margins=np.zeros((1, 8))).tolist() == [[7]]


def test_a_row_may_be_asked_for_twice_and_inputs_stay_as_they_were() -> None:
    codes, rows = random_codes(N, 16), np.array([[5, 5, 9]])
    before = codes.copy(), rows.copy()
    first, again, _ = worst_ranks(rows, codes, 16, queries=codes[:1])[0]
    assert first == again
    np.testing.assert_array_equal(codes, before[0])
    np.testing.assert_array_equal(rows, before[1])


CODES = random_codes(9, 16)


@pytest.mark.parametrize(
    ("rows", "given", "message"),
    [
        ([[0]], {}, "either queries or margins"),
        ([[0]], {"queries": CODES[:1], "margins": np.ones((1, 16))}, "either queries or margins"),
        ([[9]], {"queries": CODES[:1]}, "rows must lie from 0 to 8, got 9 to 9"),
        ([[-1]], {"queries": CODES[:1]}, "rows must lie from 0 to 8"),
        ([[0]], {"queries": CODES[:1, :1]}, "queries"),
        ([[0]], {"margins": np.full((1, 16), np.nan)}, "margins must be finite"),
        ([[0]], {"margins": np.ones((1, 15))}, "margins must have 16 columns"),
        ([0], {"margins": np.ones(16)}, "rows must be row numbers"),
        ([[0], [1]], {"queries": CODES[:1]}, r"rows must be row numbers of shape \(1, m\)"),
        ([0, 1], {"queries": CODES[:2]}, "rows must be row numbers"),
        ([[0.5]], {"queries": CODES[:1]}, "rows must be row numbers.*float64"),
    ],
)
def test_bad_input_is_named(rows: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        worst_ranks(rows, CODES, 16, **given)
