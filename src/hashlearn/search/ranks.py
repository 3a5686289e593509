"""`worst_ranks`: how many candidates a search must return until given rows are among them, whatever it does with ties.

The rank of a row is the number of codes that are at least as near to the query. Engines order equal distances in their
own ways; none of them can put the row behind this rank. Nothing is sorted: O(n_queries · n · n_bytes) time, and memory
for the distances of one query in each thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hashlearn.bits import as_words
from hashlearn.bits.hamming import distances_to_all
from hashlearn.core.checks import require_within
from hashlearn.core.threads import map_threads
from hashlearn.search.asymmetric import _tables, checked_margins
from hashlearn.search.interface import RowArray, checked_codes

QUERIES_AT_ONCE = 64


def worst_ranks(rows: Any, codes: Any, n_bits: int, *, queries: Any = None, margins: Any = None) -> RowArray:
    """The rank of each given row for its query, from 1, shape of ``rows``; ties count against the row.

    Parameters
    ----------
    rows : (n_queries, m), rows of ``codes``
    codes : packed codes of the database
    n_bits : of a code
    queries : packed codes of the queries: the rank by Hamming distance
    margins : instead, what ``decision_function`` returns: the rank of an asymmetric search

    >>> codes = np.array([[0b00], [0b01], [0b10], [0b11]], np.uint8) << 6
    >>> worst_ranks([[0, 2]], codes, 2, queries=codes[:1])
    array([[1, 3]])
    """
    if (queries is None) == (margins is None):
        raise ValueError("worst_ranks takes either queries or margins")
    codes = checked_codes(codes, n_bits)
    n_queries = len(queries) if margins is None else len(margins)
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or len(rows) != n_queries:
        raise ValueError(
            f"rows must be row numbers of shape ({n_queries}, m), one row for each query, got shape {rows.shape}, "
            f"dtype {rows.dtype}"
        )
    require_within(rows, "rows", len(codes))
    rows = np.ascontiguousarray(rows, np.int64)
    ranks = np.empty(rows.shape, np.int64)
    parts = [slice(first, first + QUERIES_AT_ONCE) for first in range(0, len(rows), QUERIES_AT_ONCE)]
    if queries is not None:
        asked = as_words(checked_codes(queries, n_bits, "queries"))
        planes = np.ascontiguousarray(as_words(codes).T)

        def rank(part: slice) -> None:
            _hamming_ranks(asked[part], planes, rows[part], n_bits, ranks[part])

    else:
        margins = checked_margins(margins, n_bits)

        def rank(part: slice) -> None:
            _score_ranks(_tables(margins[part]), codes, rows[part], ranks[part])

    list(map_threads(rank, parts))
    return ranks


@njit(cache=True, nogil=True)
def _hamming_ranks(queries, planes, rows, n_bits, ranks):  # type: ignore[no-untyped-def]
    distances = np.empty(planes.shape[1], np.uint16)
    for i in range(queries.shape[0]):
        distances_to_all(queries[i], planes, distances)
        counts = np.zeros(n_bits + 1, np.int64)
        for j in range(len(distances)):
            counts[distances[j]] += 1
        within = np.cumsum(counts)
        for place in range(rows.shape[1]):
            ranks[i, place] = within[distances[rows[i, place]]]


@njit(cache=True, nogil=True)
def _score_ranks(tables, codes, rows, ranks):  # type: ignore[no-untyped-def]
    n, n_bytes = codes.shape
    wanted = rows.shape[1]
    scores = np.empty(n)
    for i in range(rows.shape[0]):
        for j in range(n):
            score = 0.0
            for byte in range(n_bytes):
                score += tables[i, byte, codes[j, byte]]
            scores[j] = score
        limits = np.sort(scores[rows[i]])
        counts = np.zeros(wanted + 1, np.int64)  # codes whose score reaches this many of the limits
        for j in range(n):
            reached = 0
            while reached < wanted and scores[j] >= limits[reached]:
                reached += 1
            counts[reached] += 1
        for place in range(wanted):
            lowest = np.searchsorted(limits, scores[rows[i, place]], side="right")
            ranks[i, place] = np.sum(counts[lowest:])
