"""Do codes find the neighbours that the original vectors have? No labels are involved.

Label retrieval alone rewards a good classifier. Here the truth is a list of each query's nearest database rows, by
whatever distance: of the float vectors, usually.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.bits.hamming import as_words
from hashlearn.core.arrays import FloatArray
from hashlearn.metrics.counting import Counts, count_pairs
from hashlearn.metrics.inputs import make_task, require_count


def neighbour_recall(query_codes: Any, database_codes: Any, neighbours: Any, *, k: int = 10) -> float:
    """Mean fraction of each query's true neighbours that are among its k nearest database codes.

    Codes at equal distance count by the expectation over all their orders: where k ends among m codes of one distance
    and has room for r of them, a neighbour among these counts r/m.

    Parameters
    ----------
    query_codes, database_codes : packed codes
    neighbours : whole numbers (n_queries, m), database rows of each query's m true neighbours
    k : codes retrieved

    >>> database = np.array([[0b0000], [0b0001], [0b0010], [0b1111]], dtype=np.uint8)
    >>> neighbour_recall(database[:1], database, [[0, 1]], k=2)
    0.75
    """
    queries, database = np.asarray(query_codes), np.asarray(database_codes)
    n_queries, n_database = (len(codes) if codes.ndim else 0 for codes in (queries, database))
    task = make_task(queries, database, np.zeros(n_queries, np.int64), np.zeros(n_database, np.int64))
    require_count(k, "k", task)
    truth = np.asarray(neighbours)
    if truth.ndim != 2 or len(truth) != n_queries or truth.shape[1] == 0 or truth.dtype.kind not in "iu":
        raise ValueError(
            f"neighbours must be row numbers of shape ({n_queries}, m), got shape {truth.shape} of type {truth.dtype}"
        )
    if truth.min() < 0 or truth.max() >= n_database:
        raise ValueError(f"neighbours must be rows of the database, 0 to {n_database - 1}, got {truth.max()}")
    found = np.concatenate(count_pairs(task, lambda counts: _chances(counts, k)))
    words, others = as_words(queries), as_words(database)
    differing = np.bitwise_count(words[:, None, :] ^ others[truth])
    return float(np.take_along_axis(found, differing.sum(axis=2, dtype=np.int64), axis=1).mean())


def _chances(counts: Counts, k: int) -> FloatArray:
    """Chance to be among the first k, for each query of a block and each distance."""
    nearer = counts.retrieved.cumsum(axis=1) - counts.retrieved
    return np.clip(k - nearer, 0, counts.retrieved) / np.maximum(counts.retrieved, 1)
