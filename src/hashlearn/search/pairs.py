"""All pairs of codes within a Hamming radius, each pair once.

A tile is a group of rows and a block of later rows that fits the cache. The pairs of a tile are handed on before the
next tile is compared, so memory does not depend on how many pairs there are. O(n² · n_words) time. Groups and blocks
depend on n alone, so the pairs and their order are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numba import njit

from hashlearn.bits import as_words, packed_codes
from hashlearn.bits.hamming import distances_to_all, popcount
from hashlearn.core.checks import require_radius
from hashlearn.core.threads import map_threads
from hashlearn.search.interface import RowArray

Result = TypeVar("Result")

ROWS_PER_GROUP = 512
ROWS_PER_BLOCK = 4096
ROWS_AT_ONCE = 128  # rows are looked at one by one only if the leading words of one of them are near enough
FEW_BITS = 16  # one leading word decides up to this radius, two words above it


def pairs_within(codes: Any, radius: int) -> RowArray:
    """Pairs of rows i < j of packed codes that differ in at most ``radius`` bits, shape (n_pairs, 2), sorted.

    >>> pairs_within(np.array([[0b00000000], [0b11110000], [0b00000001]], np.uint8), radius=1)
    array([[0, 2]])
    """
    groups = map_pairs_within(lambda first, second: np.column_stack([first, second]), codes, radius)
    found = np.concatenate([np.empty((0, 2), np.int64), *(part for group in groups for part in group)])
    return found[np.lexsort((found[:, 1], found[:, 0]))]


def map_pairs_within(
    function: Callable[[RowArray, RowArray], Result], codes: Any, radius: int
) -> Iterator[list[Result]]:
    """For each group of rows, the list of ``function(first, second)`` of its tiles; tiles without a pair are left out.

    ``first`` and ``second`` hold the two rows of each pair, first < second. ``function`` runs on all cores.
    """
    words = as_words(packed_codes(codes, "codes"))
    n, n_words = words.shape
    limit = np.uint64(min(require_radius(radius), 64 * n_words))
    blocks = [np.ascontiguousarray(words[at : at + ROWS_PER_BLOCK].T) for at in range(0, n, ROWS_PER_BLOCK)]

    def search(start: int) -> list[Result]:
        group, results = words[start : start + ROWS_PER_GROUP], []
        for b in range(start // ROWS_PER_BLOCK, len(blocks)):
            first, second = _pairs_of_tile(group, start, blocks[b], b * ROWS_PER_BLOCK, limit)
            if len(first):
                results.append(function(first, second))
        return results

    return map_threads(search, range(0, n, ROWS_PER_GROUP))


@njit(cache=True, nogil=True)
def _pairs_of_tile(group, group_start, planes, block_start, radius):  # type: ignore[no-untyped-def]
    """Rows of the pairs within the radius, in order of (first, second); only those with first < second."""
    n_words, n = planes.shape
    n_leading = 1 if n_words == 1 or radius <= FEW_BITS else 2
    if n_words > 2 and radius > 2 * FEW_BITS:
        n_leading = n_words
    distances = np.empty(n, np.uint16)
    first, second = np.empty(1024, np.int64), np.empty(1024, np.int64)
    size = 0
    for i in range(group.shape[0]):
        code, row = group[i], group_start + i
        if n_leading > 2:
            distances_to_all(code, planes, distances)
        for start in range(max(0, row + 1 - block_start), n, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, n)
            if n_leading > 2:
                smallest = np.uint64(distances[start:stop].min())
            elif n_leading == 2:
                smallest = _smallest_of_two(code[0], planes[0, start:stop], code[1], planes[1, start:stop])
            else:
                smallest = _smallest_of_one(code[0], planes[0, start:stop])
            if smallest > radius:
                continue
            if size + ROWS_AT_ONCE > len(first):
                first, second = np.append(first, np.empty_like(first)), np.append(second, np.empty_like(second))
            for j in range(start, stop):
                distance = popcount(code[0] ^ planes[0, j])
                for w in range(1, n_words):
                    distance += popcount(code[w] ^ planes[w, j])
                if distance <= radius:
                    first[size], second[size] = row, block_start + j
                    size += 1
    return first[:size], second[:size]


@njit(cache=True, nogil=True)
def _smallest_of_one(word, others):  # type: ignore[no-untyped-def]
    smallest = np.uint64(64)
    for j in range(len(others)):
        smallest = min(smallest, popcount(word ^ others[j]))
    return smallest


@njit(cache=True, nogil=True)
def _smallest_of_two(word, others, next_word, next_others):  # type: ignore[no-untyped-def]
    smallest = np.uint64(128)
    for j in range(len(others)):
        smallest = min(smallest, popcount(word ^ others[j]) + popcount(next_word ^ next_others[j]))
    return smallest
