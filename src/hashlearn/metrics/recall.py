"""Recall of true neighbors, in the results of any search or by codes alone, and the true neighbors themselves.

`recall_of_neighbors` reads rankings, so it is the same measure for Hamming, asymmetric and rescored searches, ours and
others'. Equal distances count in the order in which the search returned them; `neighbor_recall` averages over it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import as_words
from hashlearn.core.arrays import FloatArray, to_numpy
from hashlearn.core.checks import require_k, whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.rows import as_rows, column_names, float64_rows, require_same_columns
from hashlearn.linalg.nearest import nearest_rows
from hashlearn.linalg.unit_rows import RAISE, SMALLEST, raised_rows, scale_to_unit
from hashlearn.metrics.counting import count_pairs, make_task
from hashlearn.metrics.tie_rules import chances

METRICS = ("cosine", "euclidean")
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

    ``metric`` is "cosine" or "euclidean"; a row of zeros has cosine 0 with every row. The answer is exact: no rounding
    of a matrix product decides.

    >>> float_neighbors([[1.0, 1.0]], [[0.0, 1.0], [2.0, 2.1], [1.0, 0.0]], k=2)
    array([[1, 0]])
    """
    require_choice(metric, "metric", METRICS)
    queries, database = as_rows(queries, "queries"), as_rows(database, "database")
    require_same_columns(column_names(queries), column_names(database), "queries", "database")
    points, rows = float64_rows(queries, "queries"), float64_rows(database, "database")
    if points.shape[1] != rows.shape[1]:
        raise ValueError(
            f"queries and database must have the same number of columns, got shapes {points.shape} and {rows.shape}"
        )
    k = require_k(k, len(rows))
    if metric == "cosine":
        points, rows = (scale_to_unit(np.array(raised_rows(part), order="C"), typical=0.0) for part in (points, rows))
    else:
        mean = rows.mean(axis=0)  # distances stay, and products of centered rows round less
        points, rows = points - mean, rows - mean
        if max(np.abs(points).max(), np.abs(rows).max()) < SMALLEST:
            points, rows = RAISE * points, RAISE * rows
    return np.asarray(nearest_rows(points, rows, k, by_product=metric == "cosine"))


def _row_numbers(numbers: Any, name: str) -> NDArray[Any]:
    array = np.asarray(to_numpy(getattr(numbers, "indices", numbers)))
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
