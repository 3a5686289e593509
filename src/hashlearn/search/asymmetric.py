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

from itertools import product
from typing import Any

import numpy as np
from numba import njit

from hashlearn.bits import as_words
from hashlearn.bits.hamming import weighted_distances_to_all
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import finite_float64, require_k
from hashlearn.core.threads import map_threads, n_threads
from hashlearn.search.interface import RowArray, ScoredResult, checked_codes
from hashlearn.search.scan import (
    ITEMS_AT_ONCE,
    ITEMS_PER_BLOCK,
    MOST_QUERIES_PER_GROUP,
    NUMBERS_PER_GROUP,
    Scan,
    slices,
)

BLOCKS_PER_SPAN = 16  # fewer are not worth a thread
QUERIES_PER_THREAD = 4  # with fewer, threads share the codes instead of the queries

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
    margins = checked_margins(margins)
    codes = checked_codes(codes, margins.shape[1])
    return ScoredResult(*best_scores(Scan(codes, margins.shape[1]), margins, require_k(k, len(codes))))


def checked_margins(margins: Any, n_bits: int | None = None) -> FloatArray:
    """Finite margins of shape (n_queries, n_bits), C-contiguous."""
    margins = np.ascontiguousarray(finite_float64(margins, "margins", ndim=2, may_be_empty=True))
    if margins.shape[1] != (n_bits or margins.shape[1] or 1):
        bits = "one column for each bit" if n_bits is None else f"{n_bits} columns, one for each bit"
        raise ValueError(f"margins must have {bits}, got shape {margins.shape}")
    return margins


def best_scores(scan: Scan, margins: FloatArray, k: int) -> tuple[RowArray, FloatArray]:
    """Rows and scores of the k best for checked margins, by score and then by row."""
    n_queries, n_blocks = len(margins), len(scan.blocks)
    many = n_queries >= QUERIES_PER_THREAD * n_threads()
    n_spans = 1 if many else max(1, min(n_threads(), n_blocks // BLOCKS_PER_SPAN))
    fair = -(-n_queries // n_threads()) if many else n_queries
    groups = slices(n_queries, max(1, min(fair, MOST_QUERIES_PER_GROUP, NUMBERS_PER_GROUP // (32 * scan.n_bits))))
    spans = slices(n_blocks, -(-n_blocks // n_spans))

    def search(task: tuple[slice, slice]) -> tuple[RowArray, FloatArray]:
        return _search(scan, margins[task[0]], k, task[1])

    found = list(map_threads(search, product(groups, spans)))
    rows, scores = np.empty((n_queries, k), np.int64), np.empty((n_queries, k))
    for number, group in enumerate(groups):
        parts = found[number * n_spans : (number + 1) * n_spans]
        rows[group], scores[group] = parts[0] if len(parts) == 1 else _merged(parts, k)
    return rows, scores


def _merged(parts: list[tuple[RowArray, FloatArray]], k: int) -> tuple[RowArray, FloatArray]:
    """The k best of several spans."""
    rows, scores = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _search(scan: Scan, margins: FloatArray, k: int, span: slice) -> tuple[RowArray, FloatArray]:
    """Rows and scores of a group of queries in a span of blocks."""
    n_bits, tiny = scan.n_bits, np.finfo(np.float64).tiny
    sizes = np.abs(margins)
    digits = 3 + (n_bits > THREE_DIGITS_BITS) + (n_bits > FOUR_DIGITS_BITS)
    steps = np.maximum(sizes.mean(axis=1, keepdims=True) / round(2**digits / 3), tiny)  # equal margins are whole steps
    levels = np.minimum(np.rint(sizes / steps), 2**digits - 1).astype(np.uint8)
    highest = np.sum(sizes + 2.0 * np.maximum(levels * steps - sizes, 0.0), axis=1)  # the bound of a code without loss
    signs = as_words(np.packbits(margins >= 0, axis=1))
    masks = np.stack([as_words(np.packbits((levels >> place) & 1, axis=1)) for place in range(digits)], axis=1)
    k = min(k, min(scan.n, span.stop * ITEMS_PER_BLOCK) - span.start * ITEMS_PER_BLOCK)
    rows, scores = np.empty((len(margins), k), np.int64), np.empty((len(margins), k))
    bounds = (signs, masks, highest, 2.0 * steps[:, 0], SLACK * n_bits)
    in_bytes = scan.blocks.view(np.uint8).reshape(*scan.blocks.shape, 8)
    _scan(scan.n, scan.blocks, in_bytes, span.start, span.stop, *bounds, _tables(margins), rows, scores)
    return rows, scores


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
def _scan(  # type: ignore[no-untyped-def]
    n, blocks, in_bytes, first_block, last_block, signs, masks, highest, per_step, slack, tables, rows, scores
):
    """While we scan, rows and scores of a query are a heap: worst item first. The first k scored items make it.

    Rows come in ascending order, so an item with the score of the worst one stays out. An item that loses ``limits``
    steps or more scores no higher than the worst one.
    """
    n_queries, k = rows.shape
    losses = np.empty(ITEMS_PER_BLOCK, np.uint32)
    kept = np.zeros(n_queries, np.int64)
    limits = np.full(n_queries, np.iinfo(np.int64).max)
    for b in range(first_block, last_block):
        first = b * ITEMS_PER_BLOCK
        size = min(ITEMS_PER_BLOCK, n - first)
        for i in range(n_queries):
            weighted_distances_to_all(signs[i], masks[i], blocks[b], losses)
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
                    score = 0.0
                    for byte in range(tables.shape[1]):
                        score += tables[i, byte, in_bytes[b, byte // 8, j, byte % 8]]
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
