"""`rescore`: rank the candidates of a search again by their float vectors, in memory or in a file.

Each vector that is a candidate is read once, in ascending order of row, so the database may be a file that is larger
than memory. A batch of vectors holds at most `NUMBERS_PER_BATCH` numbers. Besides it, memory is O(n_queries · depth)
for ``depth`` candidates of each query. Sums run in float64 in a fixed order: batches and threads do not change a
result.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray, to_numpy
from hashlearn.core.checks import finite_float64, require_k
from hashlearn.core.labels import require_unmasked
from hashlearn.core.names import require_choice
from hashlearn.core.rows import (
    as_rows,
    column_names,
    float64_rows,
    largest_entry,
    require_finite,
    require_same_columns,
)
from hashlearn.core.threads import map_threads, n_threads
from hashlearn.linalg.unit_rows import RAISE, SMALLEST, raised_rows
from hashlearn.search.ids import (
    NOTHING,
    IdArray,
    are_found,
    as_objects,
    checked_ids,
    order_of,
    rows_in_any_order,
    shown,
)
from hashlearn.search.interface import RowArray, ScoredResult

METRICS = ("cosine", "l2", "dot")
NUMBERS_PER_BATCH = 4_000_000


@runtime_checkable
class VectorFile(Protocol):
    """Vectors in a file, as `hashlearn.files.open_rows` opens them."""

    n_rows: int
    n_features: int

    def pick(self, rows: RowArray, size: int) -> Iterator[NDArray[Any]]:
        """These rows, which ascend, in arrays of ``size`` rows, the last one shorter."""


def rescore(
    candidates: Any, query_vectors: Any, database_vectors: Any, k: int, *, metric: str = "cosine", ids: Any = None
) -> ScoredResult:
    """The k best of each query's candidates by their float vectors; equal scores by ascending id.

    ``candidates`` is a search result, or an array (n_queries, depth) of ids: −1 for none, None among text.
    ``database_vectors`` is an array, which may be memory-mapped, or a file that `hashlearn.files.open_rows` opened,
    npy or Parquet for example. An id is a row of it, unless ``ids`` gives the id of each row, as it must for text.
    ``metric`` is "cosine", "dot", or "l2", which scores by minus the Euclidean distance. The highest score is the best.
    A zero vector has cosine 0 with every vector.

    >>> database = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> rescore([[0, 1, 2]], [[0.0, 2.0]], database, k=2).indices
    array([[2, 1]])
    """
    database = opened_vectors(database_vectors, "database_vectors")
    wanted = np.asarray(getattr(candidates, "indices", candidates))
    if wanted.ndim != 2 or wanted.dtype.kind not in "iuOUT":
        raise ValueError(
            "candidates must be a search result or ids of shape (n_queries, m), "
            f"got shape {wanted.shape}, dtype {wanted.dtype}"
        )
    if wanted.dtype.kind in "iu":
        wanted = wanted.astype(np.int64)
    else:
        texts = [str(item) if isinstance(item, uuid.UUID) else item for item in wanted.ravel().tolist()]
        wanted = as_objects(texts).reshape(wanted.shape)
    known = np.arange(database.n_rows) if ids is None else checked_ids(ids, database.n_rows)
    rows = _rows_of(wanted, known)
    return best_by_vectors(wanted, rows, _ranks(wanted, known, rows), query_vectors, database, k, metric)


def best_by_vectors(
    ids: IdArray, rows: RowArray, ranks: RowArray, query_vectors: Any, database: VectorFile, k: int, metric: str
) -> ScoredResult:
    """`rescore` for candidates whose ``rows`` of the database are known, −1 for none. Equal scores go by ``ranks``."""
    require_choice(metric, "metric", METRICS)
    query_vectors = as_rows(query_vectors, "query_vectors")
    queries = np.ascontiguousarray(float64_rows(query_vectors, "query_vectors", may_be_empty=True))
    require_same_columns(
        column_names(query_vectors), getattr(database, "names", None), "query_vectors", "database_vectors"
    )
    if database.n_features != queries.shape[1]:
        raise ValueError(
            "query_vectors and database_vectors must have as many columns, "
            f"got shapes {queries.shape} and {(database.n_rows, database.n_features)}"
        )
    if len(ids) != len(queries):
        raise ValueError(
            f"candidates and query_vectors must have one row for each query, got {len(ids)} and {len(queries)} rows"
        )
    if metric == "cosine":
        queries = raised_rows(queries)
    depth = rows.shape[1]
    k = require_k(k, depth)
    scores = np.full(rows.shape, -np.inf)
    flat_rows, flat_scores = rows.ravel(), scores.ravel()
    pairs = np.flatnonzero(flat_rows >= 0)  # of query and candidate, by row of the candidate
    pairs = pairs[np.argsort(flat_rows[pairs], kind="stable")]
    needed, places = np.unique(flat_rows[pairs], return_inverse=True)
    done = 0
    for batch in database.pick(needed, max(1, NUMBERS_PER_BATCH // max(1, database.n_features))):
        vectors = np.ascontiguousarray(finite_float64(batch, "database_vectors", ndim=2, may_be_empty=True))
        if metric == "cosine":
            vectors = raised_rows(vectors)
        here = slice(*np.searchsorted(places, (done, done + len(vectors))))
        flat_scores[pairs[here]] = pair_scores(queries, vectors, pairs[here] // depth, places[here] - done, metric)
        done += len(vectors)
    order = np.lexsort((ranks, -scores), axis=1)[:, :k]
    return ScoredResult(np.take_along_axis(ids, order, axis=1), np.take_along_axis(scores, order, axis=1))


class Vectors:
    """Vectors of ``n`` rows as one `VectorFile`, behind those that are there: arrays, memory-mapped or not, and files.

    Nothing is copied, and nothing changes an object: more vectors make a new one.
    """

    def __init__(self, vectors: Any, n: int, behind: Vectors | None = None) -> None:
        new = opened_vectors(vectors, "vectors")
        if new.n_rows != n:
            raise ValueError(f"vectors must have a row for each of the {n} code(s), got {new.n_rows}")
        if behind is not None and new.n_features != behind.n_features:
            raise ValueError(f"vectors must have {behind.n_features} columns, as those there, got {new.n_features}")
        if isinstance(new, _ArrayVectors) and not np.isfinite(largest_entry(new.array)):
            require_finite(new.array, "vectors")
        self.parts: list[VectorFile] = [new] if behind is None else [*behind.parts, new]
        self.n_rows: int = sum(part.n_rows for part in self.parts)
        self.n_features: int = new.n_features
        self.names = getattr(self.parts[0], "names", None)
        require_same_columns(getattr(new, "names", None), self.names, "vectors", "the index")

    @property
    def in_memory(self) -> bool:
        """Whether all of them are arrays."""
        return all(isinstance(part, _ArrayVectors) for part in self.parts)

    def pick(self, rows: RowArray, size: int) -> Iterator[NDArray[Any]]:
        """These rows, which ascend, in arrays of at most ``size`` rows."""
        first = 0
        for part in self.parts:
            here = slice(*np.searchsorted(rows, (first, first + part.n_rows)))
            yield from part.pick(rows[here] - first, size)
            first += part.n_rows

    def taken(self, rows: RowArray) -> NDArray[Any]:
        """These rows, which ascend, as one array."""
        return np.concatenate(list(self.pick(rows, len(rows))))


class _ArrayVectors:
    """An array, in memory or memory-mapped, as a `VectorFile`."""

    def __init__(self, vectors: Any, name: str) -> None:
        require_unmasked(vectors, name)
        if isinstance(vectors, str | os.PathLike):
            raise TypeError(f"{name} must be an array, or a file that files.open_rows has opened")
        rows = as_rows(vectors, name)
        self.names = column_names(rows)
        self.array = np.asarray(to_numpy(rows))
        if self.array.ndim != 2 or self.array.dtype.kind not in "fiu":
            shape, dtype = self.array.shape, self.array.dtype
            raise ValueError(f"{name} must be numbers in 2 dimensions, got shape {shape}, dtype {dtype}")
        self.n_rows, self.n_features = self.array.shape

    def pick(self, rows: RowArray, size: int) -> Iterator[NDArray[Any]]:
        """These rows in arrays of ``size`` rows, the last one shorter."""
        return (np.asarray(self.array[rows[at : at + size]]) for at in range(0, len(rows), size))


def opened_vectors(vectors: Any, name: str) -> VectorFile:
    """Vectors of any kind as a `VectorFile`; one that is open already is returned as it is."""
    return vectors if isinstance(vectors, VectorFile) else _ArrayVectors(vectors, name)


def _rows_of(wanted: IdArray, known: IdArray) -> RowArray:
    """The row of each wanted id. −1 stays −1; an id without a vector is refused."""
    rows = np.full(wanted.shape, NOTHING)
    there = are_found(wanted)
    rows[there] = rows_in_any_order(wanted[there], known)
    strange = there & (rows < 0)
    if strange.any():
        raise ValueError(
            f"candidates name id {shown(wanted[strange][0])}, but database_vectors ({len(known)} row(s)) have no "
            "vector for it; give the id of each row as ids if they are not the row numbers"
        )
    return rows


def _ranks(wanted: IdArray, known: IdArray, rows: RowArray) -> RowArray:
    """Numbers in the order of the ids, to break ties with."""
    if wanted.dtype.kind == "i":
        return wanted
    there = rows >= 0
    needed, places = np.unique(rows[there], return_inverse=True)
    rank = np.empty(len(needed), np.int64)
    rank[order_of(known[needed])] = np.arange(len(needed))
    ranks = rows.copy()
    ranks[there] = rank[places]
    return ranks


def pair_scores(
    queries: FloatArray, vectors: FloatArray, query_rows: RowArray, vector_rows: RowArray, metric: str
) -> FloatArray:
    """The scores of one pair or more of a query and a vector, on all cores. A pair has the same score in any batch."""
    step = max(1, -(-len(query_rows) // n_threads()))

    def score(first: int) -> FloatArray:
        part = slice(first, first + step)
        found: FloatArray = _scores(queries, vectors, query_rows[part], vector_rows[part], METRICS.index(metric))
        return found

    return np.concatenate(list(map_threads(score, range(0, len(query_rows), step))))


@njit(cache=True, nogil=True)
def _scores(queries, vectors, query_rows, vector_rows, metric):  # type: ignore[no-untyped-def]
    out = np.empty(len(query_rows))
    for i in range(len(out)):
        q, v = queries[query_rows[i]], vectors[vector_rows[i]]
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
            out[i] = dot / size if size > 0.0 else 0.0
        elif metric == 1:
            if difference < SMALLEST**2:  # squares may have been rounded to zero
                difference = 0.0
                for d in range(q.shape[0]):
                    difference += ((q[d] - v[d]) * RAISE) ** 2
                out[i] = -np.sqrt(difference) / RAISE
            else:
                out[i] = -np.sqrt(difference)
        else:
            out[i] = dot
    return out
