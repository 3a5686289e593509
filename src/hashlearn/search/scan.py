"""The exact search: it compares every code, in blocks that fit the cache, and sorts nothing.

Each step compares a block of the database with a group of queries. For each query the kernel knows the distance of the
k-th nearest item so far, so after the first blocks it stores very few items. Items come in ascending order of row, so
equal distances stay in that order. O(n_queries · n · n_words) time; besides the database, memory for one group of
queries in each thread, independent of n. Tensors are searched on their own device, in blocks of queries × items.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bits import as_words
from hashlearn.bits.hamming import distances_to_all, items_at_once, packed_to_signs, require_comparable, sign_distances
from hashlearn.core.checks import require_k
from hashlearn.core.threads import map_threads, n_threads
from hashlearn.search.interface import ByteArray, DistanceArray, RowArray, SearchResult

ITEMS_PER_BLOCK = 4096
ITEMS_AT_ONCE = 64  # items are compared one by one only if the smallest distance of these is small enough
MOST_QUERIES_PER_GROUP = 64
NUMBERS_PER_GROUP = 4_000_000
TENSOR_QUERIES_AT_ONCE = 1024


class Scan:
    """Codes in a form that can be searched. Words of one position are stored together, block by block."""

    def __init__(self, codes: ByteArray, n_bits: int) -> None:
        self.n, self.n_bits = len(codes), n_bits
        words = codes.view(np.uint64) if codes.shape[1] % 8 == 0 else as_words(codes)
        n_whole, rest = divmod(self.n, ITEMS_PER_BLOCK)
        self.blocks = np.zeros((n_whole + (rest > 0), words.shape[1], ITEMS_PER_BLOCK), np.uint64)
        for w, word in enumerate(words.T):
            self.blocks[:n_whole, w] = word[: self.n - rest].reshape(n_whole, ITEMS_PER_BLOCK)
            self.blocks[n_whole:, w, :rest] = word[self.n - rest :]

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        """Rows and distances of the k nearest, by distance and then by row, shape (n_queries, k)."""
        words = as_words(queries)
        rows, distances = np.empty((len(words), k), np.int64), np.empty((len(words), k), np.int32)
        capacity = min(self.n, 2 * k + 1024)

        def search(part: slice) -> None:
            _nearest(words[part], self.blocks, self.n, self.n_bits, k, capacity, rows[part], distances[part])

        list(map_threads(search, _groups(len(words), capacity)))
        return rows, distances

    def within(self, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
        """Limits, rows and distances of all items at most ``radius`` away, by distance and then by row."""
        words, radius = as_words(queries), min(radius, self.n_bits)
        counts = np.zeros((len(words), radius + 1), np.int64)
        self._visit(words, counts, False, np.empty(0, np.int64), np.empty(0, np.int32))
        ends = np.cumsum(counts.ravel()).reshape(counts.shape)
        limits = np.concatenate([[0], ends[:, -1]]).astype(np.int64)
        rows, distances = np.empty(limits[-1], np.int64), np.empty(limits[-1], np.int32)
        self._visit(words, ends - counts, True, rows, distances)
        return limits, rows, distances

    def _visit(self, words: NDArray[np.uint64], places: RowArray, fill: bool, *found: NDArray[Any]) -> None:
        def visit(part: slice) -> None:
            _visit_within(words[part], self.blocks, self.n, places[part], fill, *found)

        list(map_threads(visit, _groups(len(words), places.shape[1])))


def _groups(n_queries: int, numbers_per_query: int) -> list[slice]:
    """The queries that one thread handles at a time. All results are integers, so the split does not change them."""
    fair = -(-n_queries // n_threads())
    return slices(n_queries, max(1, min(fair, MOST_QUERIES_PER_GROUP, NUMBERS_PER_GROUP // numbers_per_query)))


def slices(n: int, size: int) -> list[slice]:
    """0 to n in slices of ``size``, the last one shorter."""
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


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
            for start in range(0, size, ITEMS_AT_ONCE):
                stop = min(start + ITEMS_AT_ONCE, size)
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
    """Keep, in order, all items below the limit and the first ``at_limit`` items at it. Returns how many are kept."""
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
def _visit_within(queries, blocks, n, places, fill, rows, distances):  # type: ignore[no-untyped-def]
    """Add one to ``places`` of the query and distance for every item within the radius.

    With ``fill``, ``places`` says where the next item of each query and distance is stored.
    """
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
                    if fill:
                        rows[places[i, d]] = first + j
                        distances[places[i, d]] = d
                    places[i, d] += 1


def nearest_codes(queries: Any, database: Any, k: int) -> SearchResult:
    """The k nearest of each query, nearest first, ties by row. Packed uint8 tensors in, tensors on their device out.

    The answers are those of `HammingIndex`; there is no index to build.
    """
    import torch

    n = len(database)
    k = require_k(k, n)
    require_comparable(queries, database)
    items = packed_to_signs(database)
    keys: Any = torch.empty((len(queries), k), dtype=torch.int64, device=items.device)
    for first in range(0, len(queries), TENSOR_QUERIES_AT_ONCE):
        part = packed_to_signs(queries[first : first + TENSOR_QUERIES_AT_ONCE])
        step = max(k, items_at_once(part))
        best: Any = None
        for start in range(0, n, step):
            rows = torch.arange(start, min(start + step, n), device=items.device)
            # One number that sorts by distance and then by row.
            block = sign_distances(part, items[start : start + step]).long() * n + rows
            block = block if best is None else torch.cat([best, block], dim=1)
            best = block.topk(min(k, block.shape[1]), dim=1, largest=False, sorted=True).values
        keys[first : first + TENSOR_QUERIES_AT_ONCE] = best
    return SearchResult(keys % n, (keys // n).to(torch.int32))
