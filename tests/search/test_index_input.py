"""What an index refuses, with words that say what would be right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hashlearn.search import HammingIndex
from tests.search.codes import filled, random_codes


def test_bad_numbers_are_refused() -> None:
    index = HammingIndex(12)
    codes = random_codes(5, 12)
    for call in (lambda: index.search(codes, 1), lambda: index.search_radius(codes, 1)):
        with pytest.raises(ValueError, match="nothing to search: no code has been added"):
            call()
    index.add(codes)
    for k in (0, -1, 6, 2.0, True, None):
        with pytest.raises(ValueError, match=r"k must be an integer from 1 to the 5 item\(s\)"):
            index.search(codes, k)
    for radius in (-1, 1.0, True, None):
        with pytest.raises(ValueError, match=r"radius must be an integer of at least 0, got"):
            index.search_radius(codes, radius)
    for n_bits in (0, -3, 2.0, True, None, 10**6):
        with pytest.raises(ValueError, match=r"n_bits must be an integer from 1 to"):
            HammingIndex(n_bits)


def test_bad_codes_are_refused_and_nothing_is_added() -> None:
    index = HammingIndex(12)
    codes = random_codes(5, 12)
    index.add(codes)
    wrong: list[tuple[Any, type[Exception], str]] = [
        (codes.astype(np.int64), TypeError, "dtype uint8, got int64"),
        (codes.view(np.int8), TypeError, "dtype uint8, got int8"),
        (codes[:, :1], ValueError, r"2 byte\(s\) in a row for n_bits=12"),
        (np.zeros((1, 3), np.uint8), ValueError, r"2 byte\(s\) in a row"),
        (codes[0], ValueError, "2 dimensions"),
        (np.array([[0, 1]], np.uint8), ValueError, "zero past bit 12"),
        ([[0, 0], [0]], ValueError, "rectangular"),
        ("codes", ValueError, "2 dimensions"),
    ]
    for bad, kind, words in wrong:
        for call in (index.add, lambda bad: index.search(bad, 1), lambda bad: index.search_radius(bad, 1)):
            with pytest.raises(kind, match=words):
                call(bad)
    assert len(index) == 5


def test_bad_ids_are_refused_and_nothing_changes() -> None:
    index, codes, ids = filled(12, n=10)
    wrong: list[tuple[Any, type[Exception], str]] = [
        ([1, 2], ValueError, r"one entry for each of the 10 code\(s\)"),
        ([1.0] * 10, TypeError, "ids must be integers"),
        ([-1, *range(100, 109)], ValueError, "from 0 to"),
        ([7] * 10, ValueError, "distinct, got 7 more than once"),
        (np.arange(10).reshape(5, 2), ValueError, "1 dimension"),
        (np.arange(10, dtype=np.uint64) + np.uint64(2**63), ValueError, "from 0 to"),
        ([ids[3], *range(100, 109)], ValueError, f"{ids[3]} is there already"),
    ]
    for bad, kind, words in wrong:
        with pytest.raises(kind, match=words):
            index.add(codes, bad)
    with pytest.raises(KeyError, match="1000 is not"):
        index.remove([int(ids[0]), 1000])
    index.remove([])
    np.testing.assert_array_equal(index.ids, np.sort(ids))
    index.add(codes[:1], [2**63 - 1])
    with pytest.raises(ValueError, match="would not fit 64 bits"):
        index.add(codes[:1])
