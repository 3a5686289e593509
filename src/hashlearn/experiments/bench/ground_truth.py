"""Ground truth without labels: each query's nearest database rows by Euclidean distance of the original vectors."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from hashlearn import metrics
from hashlearn.experiments.bench.protocols import Split
from hashlearn.experiments.datasets import DataSet

RETRIEVED = (10, 100)

# The result of the last call for each data set that is still in memory.
_last: weakref.WeakKeyDictionary[DataSet, tuple[Any, NDArray[np.int64]]] = weakref.WeakKeyDictionary()


def nearest_vectors(data: DataSet, split: Split, n_neighbors: int) -> NDArray[np.int64]:
    """Places in ``split.database``, shape (n_queries, n_neighbors), exact. The next cell of a draw reuses them."""
    key = (split.database.tobytes(), split.queries.tobytes(), n_neighbors)
    known = _last.get(data)
    if known is not None and known[0] == key:
        return known[1]
    search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(data.X[split.database])
    found: NDArray[np.int64] = search.kneighbors(data.X[split.queries], return_distance=False).astype(np.int64)
    _last[data] = (key, found)
    return found


def neighbours_found(
    queries: NDArray[np.uint8], database: NDArray[np.uint8], truth: NDArray[np.int64]
) -> dict[str, float | None]:
    """Recall of the true neighbours among the nearest 10 and 100 codes; None if there are fewer codes."""
    return {
        f"neighbours@{k}": metrics.neighbor_recall(queries, database, truth, k=k) if k <= len(database) else None
        for k in RETRIEVED
    }
