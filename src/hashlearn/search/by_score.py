"""Searches by a real score: margins of the query against codes, and float vectors of the top candidates.

`asymmetric_search`: a bit with a small margin counts less. The score of a code z against the query's margins m is
Σ_b m_b z_b with z_b = ±1. Only the database is binary (asymmetric distances: Gordo, Perronnin, Gong, Lazebnik 2014).
For each byte of the code we tabulate the 256 possible sums once per query, so an item costs one look-up per byte:
O(n · ⌈n_bits / 8⌉) time per query.

`rescore` reads only the vectors of the candidates, so the database may be a memory-mapped file. A batch of queries
holds at most `NUMBERS_PER_BATCH` numbers. Sums run in float64 in a fixed order: batches and threads do not change a
result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bits import unpack_signs
from hashlearn.core.checks import finite_float64, require_k
from hashlearn.core.names import require_choice
from hashlearn.core.threads import map_threads
from hashlearn.search.interface import NOTHING, ScoredResult, checked_codes, checked_ids

ITEMS_PER_BLOCK = 512
METRICS = ("cosine", "l2", "dot")
NUMBERS_PER_BATCH = 4_000_000


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


def rescore(
    candidates: Any, query_vectors: Any, database_vectors: Any, k: int, *, metric: str = "cosine", ids: Any = None
) -> ScoredResult:
    """The k best of each query's candidates by their float vectors; equal scores by ascending id.

    ``candidates`` is a search result, or an integer array (n_queries, m) of ids, −1 for none. An id is a row of
    ``database_vectors``, unless ``ids`` gives the id of each row. ``metric`` is "cosine", "dot", or "l2", which scores
    by minus the Euclidean distance. The highest score is the best. A zero vector has cosine 0 with every vector.

    >>> database = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> rescore([[0, 1, 2]], [[0.0, 2.0]], database, k=2).indices
    array([[2, 1]])
    """
    require_choice(metric, "metric", METRICS)
    queries = finite_float64(query_vectors, "query_vectors", ndim=2, may_be_empty=True)
    database = database_vectors if isinstance(database_vectors, np.ndarray) else np.asarray(database_vectors)
    if database.ndim != 2 or database.dtype.kind not in "fiu":
        raise ValueError(
            f"database_vectors must be numbers in 2 dimensions, got shape {database.shape}, dtype {database.dtype}"
        )
    if database.shape[1] != queries.shape[1]:
        raise ValueError(
            "query_vectors and database_vectors must have as many columns, "
            f"got shapes {queries.shape} and {database.shape}"
        )
    wanted = _candidate_ids(candidates, len(queries))
    k = require_k(k, wanted.shape[1])
    rows = _rows_of(wanted, len(database), ids)
    best, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k))
    step = max(1, NUMBERS_PER_BATCH // max(1, wanted.shape[1] * queries.shape[1]))

    def score(first: int) -> None:
        part = slice(first, first + step)
        near, inverse = np.unique(rows[part], return_inverse=True)
        vectors = finite_float64(database[np.maximum(near, 0)], "database_vectors", ndim=2, may_be_empty=True)
        all_scores = np.empty(rows[part].shape)
        places = inverse.reshape(rows[part].shape)
        _scores(queries[part], vectors, places, METRICS.index(metric), all_scores)
        all_scores[rows[part] < 0] = -np.inf
        order = np.lexsort((wanted[part], -all_scores), axis=1)[:, :k]
        best[part] = np.take_along_axis(wanted[part], order, axis=1)
        scores[part] = np.take_along_axis(all_scores, order, axis=1)

    list(map_threads(score, range(0, len(queries), step)))
    return ScoredResult(best, scores)


def _candidate_ids(candidates: Any, n_queries: int) -> NDArray[np.int64]:
    array = np.asarray(getattr(candidates, "indices", candidates))
    if array.ndim != 2 or array.dtype.kind not in "iu" or len(array) != n_queries:
        raise ValueError(
            f"candidates must be a search result or integer ids of shape ({n_queries}, m), one row for each query, "
            f"got shape {array.shape}, dtype {array.dtype}"
        )
    return array.astype(np.int64)


def _rows_of(wanted: NDArray[np.int64], n: int, ids: Any) -> NDArray[np.int64]:
    """The row of each wanted id. −1 stays −1; an id without a vector is refused."""
    known = np.arange(n) if ids is None else checked_ids(ids, n)
    order = np.argsort(known, kind="stable")
    places = np.minimum(np.searchsorted(known, wanted, sorter=order), max(n - 1, 0))
    rows = order[places] if n else np.full(wanted.shape, NOTHING)
    strange = (wanted != NOTHING) & ((known[rows] != wanted) if n else True)
    if strange.any():
        raise ValueError(
            f"candidates name id {wanted[strange][0]}, but database_vectors ({n} row(s)) have no vector for it; "
            "give the id of each row as ids if they are not the row numbers"
        )
    return np.where(wanted == NOTHING, NOTHING, rows)


@njit(cache=True, nogil=True)
def _scores(queries, vectors, places, metric, out):  # type: ignore[no-untyped-def]
    for i in range(places.shape[0]):
        for j in range(places.shape[1]):
            q, v = queries[i], vectors[places[i, j]]
            dot = query_square = square = difference = 0.0
            for d in range(q.shape[0]):
                dot += q[d] * v[d]
                if metric == 0:
                    query_square += q[d] * q[d]
                    square += v[d] * v[d]
                elif metric == 1:
                    difference += (q[d] - v[d]) ** 2
            if metric == 0:
                size = np.sqrt(query_square) * np.sqrt(square)
                out[i, j] = dot / size if size > 0.0 else 0.0
            elif metric == 1:
                out[i, j] = -np.sqrt(difference)
            else:
                out[i, j] = dot
