"""The exact search: every code is looked at, in blocks that stay in the cache, and nothing is sorted.

A block of the database is compared with a group of queries at a time. For each query the kernel knows the distance of
its k-th nearest item so far, so it takes nearly no item after the first blocks; items come in ascending order of
their row, hence equal distances are kept in that order. O(n_queries · n · n_words) time; beside the database, memory
for one group of queries in each thread, whatever n is.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bits import as_words
from hashlearn.bits.hamming import distances_to_all
from hashlearn.core.threads import map_threads, n_threads

ITEMS_PER_BLOCK = 4096
ITEMS_AT_A_GLANCE = 64  # only if their smallest distance is small enough are they looked at one by one
MOST_QUERIES_PER_GROUP = 64
NUMBERS_PER_GROUP = 4_000_000


class Scan:
    """Packed codes in the form of the kernels; rows are numbered as they were given."""

    exact = True

    def __init__(self, codes: NDArray[np.uint8], n_bits: int) -> None:
        self.n, self.n_bits = len(codes), n_bits
        n_blocks = -(-self.n // ITEMS_PER_BLOCK)
        words = as_words(codes)
        padded = np.zeros((n_blocks * ITEMS_PER_BLOCK, words.shape[1]), np.uint64)
        padded[: self.n] = words
        in_blocks = padded.reshape(n_blocks, ITEMS_PER_BLOCK, words.shape[1])
        self.blocks = np.ascontiguousarray(in_blocks.transpose(0, 2, 1))  # the words of one position side by side

    def extend(self, codes: NDArray[np.uint8]) -> bool:
        """Whether more codes were taken in. Never: building it anew costs no more than one copy."""
        return False

    def nearest(self, queries: NDArray[np.uint8], k: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Rows and distances of the k nearest, by distance and then by row, shape (n_queries, k)."""
        words = as_words(queries)
        rows, distances = np.empty((len(words), k), np.int64), np.empty((len(words), k), np.int32)
        capacity = min(self.n, 2 * k + 1024)

        def search(part: slice) -> None:
            _nearest(words[part], self.blocks, self.n, self.n_bits, k, capacity, rows[part], distances[part])

        list(map_threads(search, _groups(len(words), capacity)))
        return rows, distances

    def within(
        self, queries: NDArray[np.uint8], radius: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Limits, rows and distances of all items at most ``radius`` away, by distance and then by row."""
        words, radius = as_words(queries), min(radius, self.n_bits)
        groups = _groups(len(words), radius + 1)
        counts = np.zeros((len(words), radius + 1), np.int64)
        list(map_threads(lambda part: _count_within(words[part], self.blocks, self.n, counts[part]), groups))
        ends = np.cumsum(counts.ravel()).reshape(counts.shape)
        places = ends - counts
        limits = np.concatenate([[0], ends[:, -1]]).astype(np.int64)
        rows, distances = np.empty(limits[-1], np.int64), np.empty(limits[-1], np.int32)
        list(
            map_threads(
                lambda part: _fill_within(words[part], self.blocks, self.n, places[part], rows, distances), groups
            )
        )
        return limits, rows, distances


def _groups(n_queries: int, numbers_per_query: int) -> list[slice]:
    """Queries that one thread takes at a time. The answers are whole numbers, so how they are cut does not matter."""
    fair = -(-n_queries // n_threads())
    size = max(1, min(fair, MOST_QUERIES_PER_GROUP, NUMBERS_PER_GROUP // numbers_per_query))
    return [slice(first, min(first + size, n_queries)) for first in range(0, n_queries, size)]


@njit(cache=True, nogil=True)
def _nearest(queries, blocks, n, n_bits, k, capacity, rows, distances):  # type: ignore[no-untyped-def]
    n_queries = queries.shape[0]
    kept_rows = np.empty((n_queries, capacity), np.int64)
    kept_distances = np.empty((n_queries, capacity), np.uint16)
    sizes = np.zeros(n_queries, np.int64)
    counts = np.zeros((n_queries, n_bits + 2), np.int64)  # kept items at each distance
    limits = np.full(n_queries, n_bits + 1, np.int64)  # the k-th smallest distance so far; only nearer items enter
    below = np.zeros(n_queries, np.int64)  # kept items nearer than the limit
    block = np.empty(ITEMS_PER_BLOCK, np.uint16)
    for b in range(blocks.shape[0]):
        first = b * ITEMS_PER_BLOCK
        size = min(ITEMS_PER_BLOCK, n - first)
        for i in range(n_queries):
            distances_to_all(queries[i], blocks[b], block)
            for start in range(0, size, ITEMS_AT_A_GLANCE):
                stop = min(start + ITEMS_AT_A_GLANCE, size)
                smallest = block[start]
                for j in range(start, stop):
                    smallest = min(smallest, block[j])
                if smallest >= limits[i]:
                    continue
                for j in range(start, stop):
                    distance = np.int64(block[j])
                    if distance >= limits[i]:
                        continue
                    if sizes[i] == capacity:
                        sizes[i] = _forget_far(kept_rows[i], kept_distances[i], limits[i], k - below[i])
                    kept_rows[i, sizes[i]] = first + j
                    kept_distances[i, sizes[i]] = distance
                    sizes[i] += 1
                    counts[i, distance] += 1
                    below[i] += 1
                    while below[i] >= k:
                        limits[i] -= 1
                        below[i] -= counts[i, limits[i]]
    for i in range(n_queries):
        size = _forget_far(kept_rows[i, : sizes[i]], kept_distances[i, : sizes[i]], limits[i], k - below[i])
        place = np.zeros(n_bits + 2, np.int64)
        for d in range(limits[i]):
            place[d + 1] = place[d] + counts[i, d]
        for m in range(size):
            d = kept_distances[i, m]
            rows[i, place[d]] = kept_rows[i, m]
            distances[i, place[d]] = d
            place[d] += 1


@njit(cache=True, nogil=True)
def _forget_far(kept_rows, kept_distances, limit, at_limit):  # type: ignore[no-untyped-def]
    """Keep, in order, what is nearer than the limit and the first ``at_limit`` items at it; returns how many."""
    size = 0
    for m in range(kept_rows.shape[0]):
        d = kept_distances[m]
        if d > limit or (d == limit and at_limit == 0):
            continue
        if d == limit:
            at_limit -= 1
        kept_rows[size], kept_distances[size] = kept_rows[m], d
        size += 1
    return size


@njit(cache=True, nogil=True)
def _count_within(queries, blocks, n, counts):  # type: ignore[no-untyped-def]
    radius = counts.shape[1] - 1
    block = np.empty(ITEMS_PER_BLOCK, np.uint16)
    for b in range(blocks.shape[0]):
        size = min(ITEMS_PER_BLOCK, n - b * ITEMS_PER_BLOCK)
        for i in range(queries.shape[0]):
            distances_to_all(queries[i], blocks[b], block)
            for j in range(size):
                if block[j] <= radius:
                    counts[i, block[j]] += 1


@njit(cache=True, nogil=True)
def _fill_within(queries, blocks, n, places, rows, distances):  # type: ignore[no-untyped-def]
    """``places``: where the next item of each query and distance goes."""
    radius = places.shape[1] - 1
    block = np.empty(ITEMS_PER_BLOCK, np.uint16)
    for b in range(blocks.shape[0]):
        first = b * ITEMS_PER_BLOCK
        size = min(ITEMS_PER_BLOCK, n - first)
        for i in range(queries.shape[0]):
            distances_to_all(queries[i], blocks[b], block)
            for j in range(size):
                d = block[j]
                if d <= radius:
                    rows[places[i, d]] = first + j
                    distances[places[i, d]] = d
                    places[i, d] += 1
