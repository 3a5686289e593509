"""Retrieval by Hamming radius: precision within a radius, and the precision–recall curve over all radii.

A radius includes all items at a distance or none of them, so no tie rule is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import require_radius
from hashlearn.core.names import require_choice
from hashlearn.metrics.counting import CountArray, Counts, count_pairs, ratio
from hashlearn.metrics.inputs import Task, averaged, make_task


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
    per_query: bool = False,
) -> float:
    """Fraction of relevant items among those at distance ``radius`` or less, averaged over all queries.

    With the default radius it is the paper's precision@2. A query that finds nothing counts 0. ``per_query`` is
    deprecated: `evaluate` returns the values of each query.

    >>> database = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> precision_within_radius(database[:1], database, [1], [1, 0, 1], radius=2)
    0.5
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_radius(radius)
    values = np.concatenate(count_pairs(task, lambda counts: within(counts, radius)))
    result: float = averaged(values, per_query, "precision_within_radius")
    return result


def precision_recall_curve(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    average: str = "pooled",
) -> PrecisionRecallCurve:
    """Precision and recall within each radius.

    ``average="pooled"`` treats all pairs of all queries as one set. ``"macro"`` averages the precision and recall of
    each query. Precision counts 0 if nothing is found, and so does recall if nothing is relevant.

    >>> database = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> curve = precision_recall_curve(database[:1], database, [1], [1, 0, 1])
    >>> curve.precision[:4].round(3), curve.recall[:4]
    (array([1.   , 0.5  , 0.5  , 0.667]), array([0.5, 0.5, 0.5, 1. ]))
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_choice(average, "average", ("pooled", "macro"))
    return pooled_curve(task) if average == "pooled" else _macro_curve(task)


def within(counts: Counts, radius: int) -> FloatArray:
    """Precision within the radius for each query of a block."""
    last = min(radius, counts.retrieved.shape[1] - 1) + 1
    return ratio(counts.relevant[:, :last].sum(axis=1), counts.retrieved[:, :last].sum(axis=1))


def totals(counts: Counts) -> CountArray:
    """Retrieved and relevant pairs at each distance, summed over the queries of a block, shape (2, n_distances)."""
    return np.stack([counts.retrieved.sum(axis=0), counts.relevant.sum(axis=0)])


def curve_of_totals(at_distance: CountArray) -> PrecisionRecallCurve:
    """The pooled curve from the sum of the `totals` of all blocks."""
    retrieved, relevant = np.cumsum(at_distance, axis=1)
    precision, recall = ratio(relevant, retrieved), ratio(relevant, np.full_like(relevant, relevant[-1]))
    return PrecisionRecallCurve(np.arange(len(retrieved)), precision, recall, retrieved)


def pooled_curve(task: Task) -> PrecisionRecallCurve:
    """The curve of all pairs as one set."""
    return curve_of_totals(np.sum(count_pairs(task, totals), axis=0))


def _macro_curve(task: Task) -> PrecisionRecallCurve:
    def finish(counts: Counts) -> tuple[FloatArray, FloatArray, CountArray]:
        retrieved, relevant = np.cumsum(counts.retrieved, axis=1), np.cumsum(counts.relevant, axis=1)
        recall = ratio(relevant, np.broadcast_to(relevant[:, -1:], relevant.shape))
        return ratio(relevant, retrieved).sum(axis=0), recall.sum(axis=0), retrieved.sum(axis=0)

    parts = count_pairs(task, finish)
    precision, recall, retrieved = (np.sum([part[which] for part in parts], axis=0) for which in range(3))
    n = task.n_queries
    return PrecisionRecallCurve(np.arange(len(retrieved)), precision / n, recall / n, retrieved)
