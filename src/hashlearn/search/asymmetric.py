"""`asymmetric_search`: margins of the query against codes. A bit with a small margin counts less.

The score of a code z against the margins m is Σ_b m_b z_b with z_b = ±1. Only the database is binary (asymmetric
distances: Gordo, Perronnin, Gong, Lazebnik 2014). A score is a sum of one table entry for each byte of the code, always
in the same order, so threads and batches do not change a result.

Most codes are refused before their score is computed. A code loses 2 |m_b| for each bit b that differs from the sign of
the margin. We round |m_b| to a few whole steps; the loss in steps is then a weighted Hamming distance, and gives an
upper bound of the score. Only codes whose bound is above the k-th best score so far are scored.

Time: O(n_queries · n · n_words) in general; each code that the bounds do not refuse adds n_bytes look-ups. Memory
besides the codes: one block of codes and the tables of one group of queries in each thread, independent of n.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bits.hamming import weighted_distances_to_all
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import finite_float64, require_k
from hashlearn.core.threads import map_threads, n_threads
from hashlearn.search.interface import ByteArray, RowArray, ScoredResult, checked_codes

ITEMS_PER_BLOCK = 4096
ITEMS_AT_ONCE = 64  # bounds are compared one by one only if the best bound of these is good enough
ITEMS_PER_SPAN = 65_536  # fewer are not worth a thread
QUERIES_PER_THREAD = 4  # with fewer, threads share the codes instead of the queries
MOST_QUERIES_PER_GROUP = 64
NUMBERS_PER_GROUP = 4_000_000

THREE_DIGITS_BITS, FOUR_DIGITS_BITS = 128, 512  # more bits need finer steps: else most bounds are too high
SLACK = 1e-9  # of a step for each bit: more than all rounding errors in a bound and a score


def asymmetric_search(margins: Any, codes: Any, k: int) -> ScoredResult:
    """The k codes with the highest score Σ_b margin_b · sign_b for each query; equal scores by ascending row.

    ``margins`` of shape (n_queries, n_bits) are what ``decision_function`` returns; ``codes`` are packed codes of the
    database. The search is exact. With margins ±1 the score is n_bits − 2 · Hamming distance, eq. (2).

    >>> codes = np.array([[0b11000000], [0b10000000]], np.uint8)
    >>> found = asymmetric_search([[2.0, -0.5]], codes, k=2)
    >>> found.indices, found.scores
    (array([[1, 0]]), array([[2.5, 1.5]]))
    """
    margins = np.ascontiguousarray(finite_float64(margins, "margins", ndim=2, may_be_empty=True))
    n_queries, n_bits = margins.shape
    if n_bits == 0:
        raise ValueError(f"margins must have one column for each bit, got shape {margins.shape}")
    codes = checked_codes(codes, n_bits)
    k = require_k(k, len(codes))
    groups, spans = _split(n_queries, len(codes), n_bits)

    def search(task: tuple[slice, slice]) -> tuple[RowArray, FloatArray]:
        group, span = task
        return _search(margins[group], codes[span], span.start, min(k, span.stop - span.start))

    found = list(map_threads(search, product(groups, spans)))
    rows, scores = np.empty((n_queries, k), np.int64), np.empty((n_queries, k))
    for number, group in enumerate(groups):
        parts = found[number * len(spans) : (number + 1) * len(spans)]
        rows[group], scores[group] = parts[0] if len(parts) == 1 else _merged(parts, k)
    return ScoredResult(rows, scores)


def _split(n_queries: int, n: int, n_bits: int) -> tuple[list[slice], list[slice]]:
    """Groups of queries and spans of codes. Every pair of them is searched by one thread."""
    many = n_queries >= QUERIES_PER_THREAD * n_threads()
    n_spans = 1 if many else max(1, min(n_threads(), n // ITEMS_PER_SPAN))
    fair = -(-n_queries // n_threads()) if many else n_queries
    size = max(1, min(fair, MOST_QUERIES_PER_GROUP, NUMBERS_PER_GROUP // (32 * n_bits)))
    return _slices(n_queries, size), _slices(n, -(-n // n_spans))


def _slices(n: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, n)) for first in range(0, n, size)]


def _merged(parts: list[tuple[RowArray, FloatArray]], k: int) -> tuple[RowArray, FloatArray]:
    """The k best of several spans."""
    rows, scores = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _search(margins: FloatArray, codes: ByteArray, first_row: int, k: int) -> tuple[RowArray, FloatArray]:
    """Rows and scores of a group of queries in a span of codes."""
    n_bits, tiny = margins.shape[1], np.finfo(np.float64).tiny
    sizes = np.abs(margins)
    digits = 3 + (n_bits > THREE_DIGITS_BITS) + (n_bits > FOUR_DIGITS_BITS)
    steps = np.maximum(sizes.mean(axis=1, keepdims=True) / round(2**digits / 3), tiny)  # equal margins are whole steps
    levels = np.minimum(np.rint(sizes / steps), 2**digits - 1).astype(np.uint8)
    highest = np.sum(sizes + 2.0 * np.maximum(levels * steps - sizes, 0.0), axis=1)  # the bound of a code without loss
    signs = _words(np.packbits(margins >= 0, axis=1))
    masks = np.stack([_words(np.packbits((levels >> place) & 1, axis=1)) for place in range(digits)], axis=1)
    # Codes of eight bytes are words as they are, in the order of `_load` if the machine is little-endian.
    words = codes.view(np.uint64)[:, 0] if codes.shape[1] == 8 and sys.byteorder == "little" else np.empty(0, np.uint64)
    rows, scores = np.empty((len(margins), k), np.int64), np.empty((len(margins), k))
    _scan(codes, words, signs, masks, _tables(margins), highest, 2.0 * steps[:, 0], SLACK * n_bits, rows, scores)
    rows += first_row
    return rows, scores


def _words(packed: ByteArray) -> NDArray[np.uint64]:
    """Packed rows as rows of words, in the order of `_load`."""
    planes = np.empty((-(-packed.shape[1] // 8), len(packed)), np.uint64)
    _load(packed, 0, planes)
    return np.ascontiguousarray(planes.T)


@njit(cache=True, nogil=True)
def _tables(margins):  # type: ignore[no-untyped-def]
    """Sums for every value of every byte, added bit by bit. Without BLAS they are the same on every machine."""
    n_queries, n_bits = margins.shape
    tables = np.zeros((n_queries, (n_bits + 7) // 8, 256))
    for i in range(n_queries):
        for byte in range(tables.shape[1]):
            table = tables[i, byte]
            for bit in range(8):
                margin = margins[i, 8 * byte + bit] if 8 * byte + bit < n_bits else 0.0
                for value in range((1 << bit) - 1, -1, -1):  # the leading bits of a byte
                    total = table[value]
                    table[2 * value] = total - margin
                    table[2 * value + 1] = total + margin
    return tables


@njit(cache=True, nogil=True)
def _scan(codes, words, signs, masks, tables, highest, per_step, slack, rows, scores):  # type: ignore[no-untyped-def]
    """While we scan, rows and scores of a query are a heap: worst item first. The first k scored items make it.

    Rows come in ascending order, so an item with the score of the worst one stays out. An item that loses ``limits``
    steps or more scores no higher than the worst one.
    """
    n, n_bytes = codes.shape
    n_queries, k = rows.shape
    buffer = np.empty((signs.shape[1], ITEMS_PER_BLOCK), np.uint64)
    losses = np.empty(ITEMS_PER_BLOCK, np.uint32)
    kept = np.zeros(n_queries, np.int64)
    limits = np.full(n_queries, np.iinfo(np.int64).max)
    for first in range(0, n, ITEMS_PER_BLOCK):
        size = min(ITEMS_PER_BLOCK, n - first)
        if len(words):
            planes = words[first : first + size].reshape((1, size))
        else:
            _load(codes, first, buffer)
            planes = buffer
        for i in range(n_queries):
            weighted_distances_to_all(signs[i], masks[i], planes, losses)
            for start in range(0, size, ITEMS_AT_ONCE):
                stop = min(start + ITEMS_AT_ONCE, size)
                smallest = losses[start]
                for j in range(start, stop):
                    smallest = min(smallest, losses[j])
                if smallest >= limits[i]:
                    continue
                for j in range(start, stop):
                    if losses[j] >= limits[i]:
                        continue
                    score = tables[i, 0, codes[first + j, 0]]
                    for byte in range(1, n_bytes):
                        score += tables[i, byte, codes[first + j, byte]]
                    if kept[i] < k:
                        scores[i, kept[i]], rows[i, kept[i]] = score, first + j
                        kept[i] += 1
                        if kept[i] == k:
                            for place in range(k // 2 - 1, -1, -1):
                                _sink(scores[i, place], rows[i, place], place, rows[i], scores[i], k)
                    elif score > scores[i, 0]:
                        _sink(score, first + j, 0, rows[i], scores[i], k)
                    else:
                        continue
                    if kept[i] == k:
                        limits[i] = np.ceil((highest[i] - scores[i, 0]) / per_step[i] + slack)
    for i in range(n_queries):
        for size in range(k - 1, 0, -1):  # heap sort, best first
            score, row = scores[i, size], rows[i, size]
            scores[i, size], rows[i, size] = scores[i, 0], rows[i, 0]
            _sink(score, row, 0, rows[i], scores[i], size)


@njit(cache=True, nogil=True)
def _load(codes, first, planes):  # type: ignore[no-untyped-def]
    """The codes from ``first`` on as words; ``planes`` holds all words of one position together.

    The compiler reads the eight bytes of a whole word by one instruction.
    """
    n_bytes = codes.shape[1]
    block = codes[first : first + planes.shape[1]]  # rows counted from 0 need no test for negative indices
    for w in range(n_bytes // 8):
        plane = planes[w]
        for j in range(block.shape[0]):
            plane[j] = (
                np.uint64(block[j, 8 * w])
                | np.uint64(block[j, 8 * w + 1]) << np.uint64(8)
                | np.uint64(block[j, 8 * w + 2]) << np.uint64(16)
                | np.uint64(block[j, 8 * w + 3]) << np.uint64(24)
                | np.uint64(block[j, 8 * w + 4]) << np.uint64(32)
                | np.uint64(block[j, 8 * w + 5]) << np.uint64(40)
                | np.uint64(block[j, 8 * w + 6]) << np.uint64(48)
                | np.uint64(block[j, 8 * w + 7]) << np.uint64(56)
            )
    if n_bytes % 8:
        plane = planes[n_bytes // 8]
        for j in range(block.shape[0]):
            word = np.uint64(0)
            for byte in range(n_bytes - n_bytes % 8, n_bytes):
                word |= np.uint64(block[j, byte]) << np.uint64(8 * (byte % 8))
            plane[j] = word


@njit(cache=True, nogil=True)
def _sink(score, row, place, rows, scores, size):  # type: ignore[no-untyped-def]
    """Put an item at ``place`` of a heap of ``size`` items, and move it down to where the heap is in order."""
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _worse(scores[child + 1], rows[child + 1], scores[child], rows[child]):
            child += 1
        if not _worse(scores[child], rows[child], score, row):
            break
        scores[place], rows[place] = scores[child], rows[child]
        place = child
    scores[place], rows[place] = score, row


@njit(cache=True, nogil=True)
def _worse(score, row, other_score, other_row):  # type: ignore[no-untyped-def]
    """A lower score, or an equal score and a higher row."""
    return score < other_score or (score == other_score and row > other_row)
