"""The k best of a stream of (score, row), in kernels: a heap whose top is the worst that is kept.

Worse is a lower score, or the same score and a higher row, so equal scores go to the lower row. A better item takes the
place of the top: O(log k), and after a while nearly no item is better.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def offer(score, row, rows, scores, kept):  # type: ignore[no-untyped-def]
    """Keep the item if it is among the best so far; returns how many are kept now."""
    k = rows.shape[0]
    if kept < k:
        place = kept
        while place > 0:
            parent = (place - 1) // 2
            if not _worse(score, row, scores[parent], rows[parent]):
                break
            scores[place], rows[place] = scores[parent], rows[parent]
            place = parent
        scores[place], rows[place] = score, row
        return kept + 1
    if _worse(scores[0], rows[0], score, row):
        _sink(score, row, rows, scores, k)
    return kept


@njit(cache=True, nogil=True)
def take_in_order(rows, scores):  # type: ignore[no-untyped-def]
    """Sort a full heap in place, best first."""
    for size in range(rows.shape[0] - 1, 0, -1):
        score, row = scores[size], rows[size]
        scores[size], rows[size] = scores[0], rows[0]
        _sink(score, row, rows, scores, size)


@njit(cache=True, nogil=True)
def _sink(score, row, rows, scores, size):  # type: ignore[no-untyped-def]
    """Put the item in the place of the top of a heap of ``size`` items."""
    place = np.int64(0)
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
    return score < other_score or (score == other_score and row > other_row)
