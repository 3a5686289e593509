"""Exact neighbours, ties by id, from an engine that is exact but takes any of equally near items at the k-th place.

More neighbours than k are asked for, until the distance has moved on behind the k-th place or everything has been seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.results import SearchResult

Answer: TypeAlias = tuple[NDArray[Any], NDArray[Any]]  # ids and distances, shape (n_queries, count)

GROWTH = 4


def settled(ask: Callable[[NDArray[np.int64], int], Answer], n_queries: int, n: int, k: int) -> SearchResult:
    """The k nearest by (distance, id). ``ask(queries, count)``: the ``count`` ≤ n nearest of the numbered queries.

    >>> ids, distances = np.array([[9, 4, 2, 3]]), np.array([[0, 1, 1, 5]])
    >>> settled(lambda queries, count: (ids[:, :count], distances[:, :count]), 1, 4, 2).indices
    array([[9, 2]])
    """
    indices, distances = np.empty((n_queries, k), np.int64), np.empty((n_queries, k), np.int32)
    open_queries, count = np.arange(n_queries), min(n, max(2 * k, k + 64))
    while len(open_queries):
        found, far = (np.asarray(array) for array in ask(open_queries, count))
        found, far = found.astype(np.int64), far.astype(np.int32)
        order = np.lexsort((found, far), axis=1)
        found, far = (np.take_along_axis(array, order, axis=1) for array in (found, far))
        done = (far[:, k - 1] < far[:, -1]) | (count == n)
        indices[open_queries[done]], distances[open_queries[done]] = found[done, :k], far[done, :k]
        open_queries, count = open_queries[~done], min(n, GROWTH * count)
    return SearchResult(indices, distances)
