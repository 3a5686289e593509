"""Recall of true neighbors, in the results of any search or by codes alone, and the true neighbors themselves.

`recall_of_neighbors` reads rankings, so it is the same measure for Hamming, asymmetric and rescored searches, ours and
others'. Equal distances count in the order in which the search returned them; `neighbor_recall` averages over it.

`float_neighbors` compares every query with every row: O(n_queries · n · n_features), as matrix products on all cores.
Products round differently from block to block, so rows that are close to rank k are compared again, one by one in a
fixed order. The answer is then exact, and equal rows come in ascending order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bits import as_words
from hashlearn.core.arrays import EPS, FloatArray, to_numpy
from hashlearn.core.checks import require_k, whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.rows import as_rows, column_names, float64_rows, require_same_columns
from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.linalg.unit_rows import RAISE, SMALLEST, raised_rows, scale_to_unit
from hashlearn.metrics.counting import count_pairs
from hashlearn.metrics.inputs import make_task
from hashlearn.metrics.tie_rules import chances

METRICS = ("cosine", "euclidean")
SCORES_AT_ONCE = 8_000_000  # in each thread
PAIRS_AT_ONCE = 16_000_000


def recall_of_neighbors(results: Any, true: Any, *, k: int = 10, depth: int | None = None) -> float:
    """Mean share of each query's k true neighbors that are among the first ``depth`` results.

    Parameters
    ----------
    results : a search result, or row numbers (n_queries, depth or more), best first; −1 stands for none
    true : row numbers (n_queries, k or more) of the true neighbors, nearest first, as `float_neighbors` returns them
    k : how many true neighbors count
    depth : how many results count; None: k. With k=10 and depth=100 it is the recall@10 that remains if the floats
        of the first 100 are compared again

    >>> results, true = [[4, 7, 1, 0]], [[7, 0, 4]]
    >>> recall_of_neighbors(results, true, k=2), recall_of_neighbors(results, true, k=2, depth=4)
    (0.5, 1.0)
    """
    return float(recalls_of_neighbors(results, true, k=k, depth=depth).mean())


def recalls_of_neighbors(results: Any, true: Any, *, k: int = 10, depth: int | None = None) -> FloatArray:
    """`recall_of_neighbors` of each query by itself, shape (n_queries,).

    >>> recalls_of_neighbors([[4, 7], [1, 2]], [[7, 4], [3, 1]], k=2)
    array([1. , 0.5])
    """
    results, true = _row_numbers(results, "results"), _row_numbers(true, "true")
    if len(results) != len(true) or len(true) == 0:
        raise ValueError(
            f"results and true must have one row for each query, got shapes {results.shape} and {true.shape}"
        )
    k = _within(k, "k", true, "true")
    depth = _within(k if depth is None else depth, "depth", results, "results")
    results, true = results[:, :depth], true[:, :k]
    if true.min() < 0:
        raise ValueError(f"true must hold row numbers of at least 0, got {true.min()}")
    if (np.diff(np.sort(true, axis=1), axis=1) == 0).any():
        raise ValueError("true must hold distinct row numbers for each query, got one more than once")
    shares = np.empty(len(true))
    step = max(1, PAIRS_AT_ONCE // (k * depth))
    for first in range(0, len(true), step):
        part = slice(first, first + step)
        shares[part] = (true[part, :, None] == results[part, None, :]).any(axis=2).mean(axis=1)
    return shares


def neighbor_recall(query_codes: Any, database_codes: Any, neighbors: Any, *, k: int = 10) -> float:
    """Mean fraction of each query's true neighbors that are among its k nearest database codes.

    This needs no labels: the truth is usually each query's nearest float vectors. Codes at equal distance count by the
    expectation over all orders: if r of the m codes at one distance are among the first k, each of them counts r/m.

    Parameters
    ----------
    query_codes, database_codes : packed codes
    neighbors : integers (n_queries, m), database rows of each query's m true neighbors
    k : codes retrieved

    >>> database = np.array([[0b0000], [0b0001], [0b0010], [0b1111]], dtype=np.uint8)
    >>> neighbor_recall(database[:1], database, [[0, 1]], k=2)
    0.75
    """
    queries, database = np.asarray(query_codes), np.asarray(database_codes)
    n_queries, n_database = (len(codes) if codes.ndim else 0 for codes in (queries, database))
    task = make_task(queries, database, np.zeros(n_queries, np.int64), np.zeros(n_database, np.int64))
    require_k(k, n_database)
    truth = np.asarray(neighbors)
    if truth.ndim != 2 or len(truth) != n_queries or truth.shape[1] == 0 or truth.dtype.kind not in "iu":
        raise ValueError(
            f"neighbors must be row numbers of shape ({n_queries}, m), got shape {truth.shape} of type {truth.dtype}"
        )
    if truth.min() < 0 or truth.max() >= n_database:
        raise ValueError(f"neighbors must be rows of the database, 0 to {n_database - 1}, got {truth.max()}")
    chances_at = np.concatenate(count_pairs(task, lambda counts: chances(counts.retrieved, k)))
    distances = np.bitwise_count(task.queries[:, None, :] ^ as_words(database)[truth]).sum(axis=2, dtype=np.int64)
    return float(np.take_along_axis(chances_at, distances, axis=1).mean())


def float_neighbors(queries: Any, database: Any, k: int = 10, *, metric: str = "cosine") -> NDArray[np.int64]:
    """Row numbers of each query's k nearest database rows, shape (n_queries, k): nearest first, equal ones by row.

    ``metric`` is "cosine" or "euclidean". A row of zeros has cosine 0 with every row.

    >>> float_neighbors([[1.0, 1.0]], [[0.0, 1.0], [2.0, 2.1], [1.0, 0.0]], k=2)
    array([[1, 0]])
    """
    require_choice(metric, "metric", METRICS)
    queries, database = as_rows(queries, "queries"), as_rows(database, "database")
    require_same_columns(column_names(queries), column_names(database), "queries", "database")
    asked, rows = float64_rows(queries, "queries"), float64_rows(database, "database")
    if asked.shape[1] != rows.shape[1]:
        raise ValueError(
            f"queries and database must have the same number of columns, got shapes {asked.shape} and {rows.shape}"
        )
    k = require_k(k, len(rows))
    if metric == "cosine":
        asked, rows = (scale_to_unit(np.array(raised_rows(part), order="C"), typical=0.0) for part in (asked, rows))
    else:
        mean = rows.mean(axis=0)  # distances stay, and products of centered rows round less
        asked, rows = asked - mean, rows - mean
        if max(np.abs(asked).max(), np.abs(rows).max()) < SMALLEST:
            asked, rows = RAISE * asked, RAISE * rows
    squares = np.einsum("ij,ij->i", rows, rows)
    longest = float(np.sqrt(squares.max()))
    nearest = np.empty((len(asked), k), np.int64)
    step = max(1, SCORES_AT_ONCE // len(rows))

    def search(first: int) -> None:
        part = asked[first : first + step]
        scores = part @ rows.T
        if metric == "euclidean":
            scores -= 0.5 * squares
        lengths = np.linalg.norm(part, axis=1)
        rounding = 4.0 * rows.shape[1] * EPS * longest * (lengths + longest)
        least = np.partition(scores, len(rows) - k, axis=1)[:, len(rows) - k] - rounding
        _order(scores, least, part, rows, metric == "euclidean", nearest[first : first + step])

    with one_blas_thread():
        list(map_threads(search, range(0, len(asked), step)))
    return nearest


@njit(cache=True, nogil=True)
def _order(scores, least, queries, rows, euclidean, nearest):  # type: ignore[no-untyped-def]
    """The k best of all rows whose score is at least ``least``, by sums in a fixed order; equal ones by row."""
    for i in range(scores.shape[0]):
        near = np.flatnonzero(scores[i] >= least[i])
        exact = np.zeros(len(near))
        for place in range(len(near)):
            row = rows[near[place]]
            for j in range(row.shape[0]):
                if euclidean:
                    exact[place] += (queries[i, j] - row[j]) ** 2
                else:
                    exact[place] -= queries[i, j] * row[j]
        order = np.argsort(exact, kind="mergesort")
        for place in range(nearest.shape[1]):
            nearest[i, place] = near[order[place]]


def _row_numbers(given: Any, name: str) -> NDArray[Any]:
    array = np.asarray(to_numpy(getattr(given, "indices", given)))
    if array.ndim != 2 or array.dtype.kind not in "iu":
        what = "a search result or row numbers" if name == "results" else "row numbers"
        raise ValueError(
            f"{name} must be {what} of shape (n_queries, m), got shape {array.shape} of type {array.dtype}"
        )
    return array


def _within(number: Any, name: str, array: NDArray[Any], array_name: str) -> int:
    """A count of columns, refused if the array has fewer."""
    count = whole_number(number, name, least=1)
    if count > array.shape[1]:
        raise ValueError(f"{name}={count} needs as many columns of {array_name}, got shape {array.shape}")
    return count
