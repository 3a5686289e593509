"""Rank the top candidates of a search again, by the exact similarity of their float vectors.

Only the vectors of the candidates are read, so the database may be a memory-mapped file. A batch of queries holds at
most `NUMBERS_PER_BATCH` numbers. Sums run in float64 in a fixed order: batches and threads do not change a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.checks import finite_float64, require_k
from hashlearn.core.names import require_choice
from hashlearn.core.threads import map_threads
from hashlearn.search.inputs import checked_ids
from hashlearn.search.results import NOTHING, ScoredResult

METRICS = ("cosine", "l2", "dot")
NUMBERS_PER_BATCH = 4_000_000


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
