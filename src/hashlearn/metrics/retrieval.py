"""Retrieval within a Hamming radius, and of the k nearest items.

A radius includes all items at a distance or none of them, so only the k nearest need a tie rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashlearn.bits import as_words
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import require_k, require_radius
from hashlearn.core.names import require_choice
from hashlearn.metrics.counting import CountArray, Counts, count_pairs, ratio
from hashlearn.metrics.inputs import Task, make_task
from hashlearn.metrics.tie_rules import TIES, chances, expected_hits


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """One point for each radius 0, 1, …, 8 · bytes. Beyond n_bits (pad bits) the last point repeats."""

    radius: CountArray
    precision: FloatArray
    recall: FloatArray
    retrieved: CountArray  # pairs within the radius, over all queries


def precision_within_radius(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    radius: int = 2,
) -> float:
    """Fraction of relevant items among those at distance ``radius`` or less, averaged over all queries.

    With the default radius it is the paper's precision@2. A query that finds nothing counts 0. `evaluate`
    returns the values of each query.

    >>> database = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> precision_within_radius(database[:1], database, [1], [1, 0, 1], radius=2)
    0.5
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_radius(radius)
    values = np.concatenate(count_pairs(task, lambda counts: within(counts, radius)))
    return float(values.mean())


def precision_recall_curve(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any
) -> PrecisionRecallCurve:
    """Precision and recall within each radius, of all pairs of all queries as one set.

    Precision counts 0 if nothing is found, and so does recall if nothing is relevant.

    >>> database = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> curve = precision_recall_curve(database[:1], database, [1], [1, 0, 1])
    >>> curve.precision[:4].round(3), curve.recall[:4]
    (array([1.   , 0.5  , 0.5  , 0.667]), array([0.5, 0.5, 0.5, 1. ]))
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    return curve_of_totals(np.sum(count_pairs(task, totals), axis=0))


def within(counts: Counts, radius: int) -> FloatArray:
    """Precision within the radius for each query of a block."""
    last = min(radius, counts.retrieved.shape[1] - 1) + 1
    return ratio(counts.relevant[:, :last].sum(axis=1), counts.retrieved[:, :last].sum(axis=1))


def totals(counts: Counts) -> CountArray:
    """Retrieved and relevant pairs at each distance, summed over the queries of a block, shape (2, n_distances)."""
    return np.stack([counts.retrieved.sum(axis=0), counts.relevant.sum(axis=0)])


def curve_of_totals(at_distance: CountArray) -> PrecisionRecallCurve:
    """The curve from the sum of the `totals` of all blocks."""
    retrieved, relevant = np.cumsum(at_distance, axis=1)
    precision, recall = ratio(relevant, retrieved), ratio(relevant, np.full_like(relevant, relevant[-1]))
    return PrecisionRecallCurve(np.arange(len(retrieved)), precision, recall, retrieved)


def precision_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = "expected",
) -> float:
    """hits(k)/k: the fraction of relevant items among the k nearest, averaged over all queries.

    ``ties`` says which items at the distance of rank k are taken: "expected" averages over all orders, "stable" takes
    them in database order. `evaluate` returns the values of each query.

    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> precision_at_k(database[:1], database, [1], [1, 0, 1], k=2)  # 1 for sure and then 1 or 0
    0.75
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    return float((_hits_at_k(task, k, ties)[0] / k).mean())


def recall_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = "expected",
) -> float:
    """hits(k)/R: the fraction of the R relevant items of the database that are among the k nearest.

    This is averaged over all queries; those with R = 0 count 0. ``ties`` as in `precision_at_k`.

    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> recall_at_k(database[:1], database, [1], [1, 0, 1], k=2)
    0.75
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    return float(ratio(*_hits_at_k(task, k, ties)).mean())


def knn_accuracy(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, k: int = 4
) -> float:
    """Fraction of queries whose class is the majority vote of their k nearest database items.

    Items at equal distance are taken in database order, because the mean over all orders has no simple formula. If
    classes have equal votes, the smaller sum of distances wins, then the smaller label. Labels must be classes.

    >>> database = np.array([[0b0000], [0b0001], [0b1111]], dtype=np.uint8)
    >>> knn_accuracy(database[:1], database, ["cat"], ["cat", "cat", "dog"], k=3)
    1.0
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_vote(task, k, "k")
    return float(np.concatenate(count_pairs(task, voted_rightly, voters=k)).mean())


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
    found = np.concatenate(count_pairs(task, lambda counts: chances(counts.retrieved, k)))
    differing = np.bitwise_count(task.queries[:, None, :] ^ as_words(database)[truth])
    return float(np.take_along_axis(found, differing.sum(axis=2, dtype=np.int64), axis=1).mean())


def require_vote(task: Task, k: int, name: str) -> None:
    """Refuse a vote over label sets, or of an impossible number of items."""
    require_k(k, task.n_database, name)
    if task.classes == 0:
        raise ValueError("knn_accuracy needs one class for each sample: labels must be 1-D, not 0/1 indicators")


def hits_finisher(counts: Counts, k: int, ties: str) -> FloatArray:
    """hits(k) of each query of a block."""
    if ties == "stable":
        return counts.k_hits.astype(np.float64)
    return expected_hits(counts.retrieved, counts.relevant, k)


def voted_rightly(counts: Counts) -> FloatArray:
    """1 for each query of a block whose class was predicted, else 0."""
    return np.asarray(counts.predicted == counts.actual, np.float64)


def _hits_at_k(task: Task, k: int, ties: str) -> FloatArray:
    """hits(k) and the number of relevant items of each query, shape (2, n_queries)."""
    require_choice(ties, "ties", TIES)
    require_k(k, task.n_database)

    def finish(counts: Counts) -> FloatArray:
        return np.stack([hits_finisher(counts, k, ties), counts.n_relevant])

    return np.concatenate(count_pairs(task, finish, database_order=ties == "stable", k=k), axis=1)
