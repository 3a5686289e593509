"""Search with real margins of the query: a bit with a small margin counts less.

The score of a code z against the query's margins m is Σ_b m_b z_b with z_b = ±1. Only the database is binary
(asymmetric distances: Gordo, Perronnin, Gong, Lazebnik 2014). For each byte of the code we tabulate the 256 possible
sums once per query, so an item costs one look-up per byte: O(n · ⌈n_bits / 8⌉) time per query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hashlearn.bits import unpack_signs
from hashlearn.core.checks import finite_float64, require_k
from hashlearn.core.threads import map_threads
from hashlearn.search.inputs import checked_codes
from hashlearn.search.results import ScoredResult

ITEMS_PER_BLOCK = 512


def asymmetric_search(margins: Any, codes: Any, k: int) -> ScoredResult:
    """The k codes with the highest score Σ_b margin_b · sign_b for each query; equal scores by ascending row.

    ``margins`` of shape (n_queries, n_bits) are what ``decision_function`` returns; ``codes`` are packed codes of the
    database. All items are scored. With margins ±1 the score is n_bits − 2 · Hamming distance, eq. (2).

    >>> codes = np.array([[0b11000000], [0b10000000]], np.uint8)
    >>> found = asymmetric_search([[2.0, -0.5]], codes, k=2)
    >>> found.indices, found.scores
    (array([[1, 0]]), array([[2.5, 1.5]]))
    """
    margins = finite_float64(margins, "margins", ndim=2, may_be_empty=True)
    if margins.shape[1] == 0:
        raise ValueError(f"margins must have one column for each bit, got shape {margins.shape}")
    n_bits = margins.shape[1]
    codes = checked_codes(codes, n_bits)
    k = require_k(k, len(codes))
    planes = np.ascontiguousarray(codes.T)
    patterns = unpack_signs(np.arange(256, dtype=np.uint8)[:, None], 8).astype(np.float64)
    rows, scores = np.empty((len(margins), k), np.int64), np.empty((len(margins), k))

    def search(query: int) -> None:
        padded = np.zeros((codes.shape[1], 8))
        padded.ravel()[:n_bits] = margins[query]
        _best(_tables(padded, patterns), planes, rows[query], scores[query])

    list(map_threads(search, range(len(margins))))
    return ScoredResult(rows, scores)


@njit(cache=True, nogil=True)
def _tables(margins, patterns):  # type: ignore[no-untyped-def]
    """Sums for every value of every byte, added bit by bit. Without BLAS they are the same on every machine."""
    tables = np.zeros((margins.shape[0], 256))
    for byte in range(margins.shape[0]):
        for value in range(256):
            for bit in range(8):
                tables[byte, value] += margins[byte, bit] * patterns[value, bit]
    return tables


@njit(cache=True, nogil=True)
def _best(tables, planes, rows, scores):  # type: ignore[no-untyped-def]
    """``planes`` holds all bytes of one position together. While we scan, rows and scores are a heap: worst item first.

    The first k items make the heap. Rows come in ascending order, so an item with the score of the worst one stays out.
    """
    n_bytes, n = planes.shape
    block = np.empty(ITEMS_PER_BLOCK)
    kept, k, worst = 0, rows.shape[0], -np.inf
    for first in range(0, n, ITEMS_PER_BLOCK):
        size = min(ITEMS_PER_BLOCK, n - first)
        for j in range(size):
            block[j] = tables[0, planes[0, first + j]]
        for byte in range(1, n_bytes):
            for j in range(size):
                block[j] += tables[byte, planes[byte, first + j]]
        for j in range(size):
            if block[j] <= worst:
                continue
            if kept == k:
                _sink(block[j], first + j, 0, rows, scores, k)
            else:
                scores[kept], rows[kept] = block[j], first + j
                kept += 1
                if kept == k:
                    for place in range(k // 2 - 1, -1, -1):
                        _sink(scores[place], rows[place], place, rows, scores, k)
            if kept == k:
                worst = scores[0]
    for size in range(rows.shape[0] - 1, 0, -1):  # heap sort, best first
        score, row = scores[size], rows[size]
        scores[size], rows[size] = scores[0], rows[0]
        _sink(score, row, 0, rows, scores, size)


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
