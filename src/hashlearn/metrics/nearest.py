"""The k nearest items: precision and recall among them, and the class they vote for."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.core.names import require_choice
from hashlearn.metrics.counting import Counts, count_pairs
from hashlearn.metrics.inputs import Task, make_task, require_count
from hashlearn.metrics.tie_rules import TIES, hits_by_rule


@overload
def precision_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = ...,
    per_query: Literal[False] = ...,
) -> float: ...
@overload
def precision_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = ...,
    per_query: Literal[True],
) -> FloatArray: ...
def precision_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = "expected",
    per_query: bool = False,
) -> float | FloatArray:
    """hits(k)/k: the fraction of relevant items among the k nearest, averaged over all queries.

    ``ties``, for the distance that rank k cuts: "expected" over all orders, "stable" in database order, "optimistic" or
    "pessimistic".

    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> precision_at_k(database[:1], database, [1], [1, 0, 1], k=2)  # 1 for sure and then 1 or 0
    0.75
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    values = np.concatenate([hits / k for hits, _ in _hits_at_k(task, k, ties)])
    return values if per_query else float(values.mean())


@overload
def recall_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = ...,
    per_query: Literal[False] = ...,
) -> float: ...
@overload
def recall_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = ...,
    per_query: Literal[True],
) -> FloatArray: ...
def recall_at_k(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int,
    ties: str = "expected",
    per_query: bool = False,
) -> float | FloatArray:
    """hits(k)/R: the fraction of the R relevant items of the database that are among the k nearest.

    Averaged over all queries, those with R = 0 counting 0. ``ties`` as in `precision_at_k`.

    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> recall_at_k(database[:1], database, [1], [1, 0, 1], k=2)
    0.75
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    values = np.concatenate([recall(hits, n_relevant) for hits, n_relevant in _hits_at_k(task, k, ties)])
    return values if per_query else float(values.mean())


def knn_accuracy(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, k: int = 4
) -> float:
    """Fraction of queries whose class is the majority vote of their k nearest database items.

    Items at equal distance enter in database order (the mean over all orders of a vote is no simple formula). Classes
    with equal votes: the one with the smaller sum of distances wins, then the smaller label. Labels must be classes.

    >>> database = np.array([[0b0000], [0b0001], [0b1111]], dtype=np.uint8)
    >>> knn_accuracy(database[:1], database, ["cat"], ["cat", "cat", "dog"], k=3)
    1.0
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_vote(task, k, "k")
    return float(np.concatenate(count_pairs(task, voted_rightly, neighbours=k)).mean())


def require_vote(task: Task, k: int, name: str) -> None:
    """Refuse a vote over label sets, or of an impossible number of items."""
    require_count(k, name, task)
    if task.classes == 0:
        raise ValueError("knn_accuracy needs one class for each sample: labels must be 1-D, not 0/1 indicators")


def hits_finisher(counts: Counts, k: int, ties: str) -> FloatArray:
    """hits(k) of each query of a block."""
    if ties == "stable":
        return counts.k_hits.astype(np.float64)
    return hits_by_rule(counts.retrieved, counts.relevant, ties, k)


def recall(hits: FloatArray, n_relevant: FloatArray) -> FloatArray:
    """hits / n_relevant, 0 where nothing is relevant."""
    return np.divide(hits, n_relevant, out=np.zeros_like(hits), where=n_relevant > 0)


def voted_rightly(counts: Counts) -> FloatArray:
    """1 for each query of a block whose class was predicted, else 0."""
    return (counts.predicted == counts.actual).astype(np.float64)


def _hits_at_k(task: Task, k: int, ties: str) -> list[tuple[FloatArray, FloatArray]]:
    require_choice(ties, "ties", TIES)
    require_count(k, "k", task)
    return count_pairs(
        task,
        lambda counts: (hits_finisher(counts, k, ties), counts.n_relevant.astype(np.float64)),
        database_order=ties == "stable",
        k=k,
    )
