"""Search with real margins on the query's side: bits that the query is unsure of count less.

The score of a code z against the query's margins m is Σ_b m_b z_b with z_b = ±1, as if the query had not been rounded;
only the database is binary (asymmetric distances: Gordo, Perronnin, Gong, Lazebnik 2014). For each byte of the code the
256 possible sums are tabulated once for a query, so an item costs one look-up a byte: O(n · ⌈n_bits / 8⌉) a query.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hashlearn.bits import unpack_signs
from hashlearn.core.checks import finite_float64
from hashlearn.core.threads import map_threads
from hashlearn.search.inputs import checked_codes, require_k
from hashlearn.search.results import ScoredResult
from hashlearn.search.top_k_heap import offer, take_in_order

ITEMS_PER_BLOCK = 512


def asymmetric_search(margins: Any, codes: Any, k: int) -> ScoredResult:
    """The k codes of the highest score Σ_b margin_b · sign_b for each query; equal scores by ascending row.

    ``margins``: (n_queries, n_bits), what ``decision_function`` returns; ``codes``: packed codes of the database. All
    items are scored. With margins ±1 the score is n_bits − 2 · Hamming distance, eq. (2).

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
    """Sums for every value of every byte, added bit by bit: no BLAS, so the same on every machine and thread."""
    tables = np.zeros((margins.shape[0], 256))
    for byte in range(margins.shape[0]):
        for value in range(256):
            for bit in range(8):
                tables[byte, value] += margins[byte, bit] * patterns[value, bit]
    return tables


@njit(cache=True, nogil=True)
def _best(tables, planes, rows, scores):  # type: ignore[no-untyped-def]
    """``planes``: the codes with the bytes of one position side by side, so that sums of items do not wait in line."""
    n_bytes, n = planes.shape
    block = np.empty(ITEMS_PER_BLOCK)
    kept, k = 0, rows.shape[0]
    for first in range(0, n, ITEMS_PER_BLOCK):
        size = min(ITEMS_PER_BLOCK, n - first)
        for j in range(size):
            block[j] = tables[0, planes[0, first + j]]
        for byte in range(1, n_bytes):
            for j in range(size):
                block[j] += tables[byte, planes[byte, first + j]]
        for j in range(size):
            if kept < k or block[j] > scores[0]:
                kept = offer(block[j], first + j, rows, scores, kept)
    take_in_order(rows, scores)
