"""Several metrics from one pass over the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.metrics.average_precision import area, finisher, mean_over_queries, require_conventions
from hashlearn.metrics.counting import CountArray, Counts, count_pairs
from hashlearn.metrics.inputs import make_task, require_count, require_radius
from hashlearn.metrics.nearest import hits_finisher, recall, require_vote, voted_rightly
from hashlearn.metrics.radius import PrecisionRecallCurve, curve_of_totals, totals, within


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What `evaluate` found, fractions in [0, 1]; None where it was not asked for."""

    mean_average_precision: float
    precision_within_radius: float
    precision_at_k: float | None
    recall_at_k: float | None
    knn_accuracy: float | None
    curve: PrecisionRecallCurve  # pooled, by radius
    ties: str
    average: str
    top_k: int | None
    radius: int
    k: int | None
    neighbours: int | None


def evaluate(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    ties: str = "expected",
    average: str = "plain",
    top_k: int | None = None,
    radius: int = 2,
    k: int | None = None,
    neighbours: int | None = None,
) -> Evaluation:
    """Mean average precision, precision within ``radius`` and the pooled precision–recall curve, in one pass.

    ``k`` adds precision and recall among the k nearest, ``neighbours`` the accuracy of a vote of so many of them
    (classes only). Each number is that of the function of its name with the same arguments.

    >>> database = np.array([[0b0000], [0b0001], [0b1110]], dtype=np.uint8)
    >>> found = evaluate(database[:1], database, [1], [1, 0, 1], neighbours=1)
    >>> found.mean_average_precision, found.precision_within_radius, found.knn_accuracy
    (0.8333333333333333, 0.5, 1.0)
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_conventions(task, ties, average, top_k)
    require_radius(radius)
    if k is not None:
        require_count(k, "k", task)
    if neighbours is not None:
        require_vote(task, neighbours, "neighbours")
    precisions = finisher(task.n_database, ties, "plain" if average == "pooled" else average, top_k)

    def finish(counts: Counts) -> tuple[CountArray, FloatArray]:
        nothing = np.zeros(len(counts.retrieved))
        hits = nothing if k is None else hits_finisher(counts, k, ties)
        right = nothing if neighbours is None else voted_rightly(counts)
        n_relevant = counts.n_relevant.astype(np.float64)
        columns = [precisions(counts), within(counts, radius), hits, recall(hits, n_relevant), right]
        return totals(counts), np.stack(columns)

    parts = count_pairs(
        task,
        finish,
        database_order=ties == "stable",
        before=average == "trapezoid",
        top_k=top_k,
        k=k,
        neighbours=neighbours or 0,
    )
    curve = curve_of_totals(np.sum([part[0] for part in parts], axis=0))
    per_query = np.concatenate([part[1] for part in parts], axis=1)
    return Evaluation(
        mean_average_precision=area(curve) if average == "pooled" else mean_over_queries(per_query[0], average),
        precision_within_radius=float(per_query[1].mean()),
        precision_at_k=None if k is None else float((per_query[2] / k).mean()),
        recall_at_k=None if k is None else float(per_query[3].mean()),
        knn_accuracy=None if neighbours is None else float(per_query[4].mean()),
        curve=curve,
        ties=ties,
        average=average,
        top_k=top_k,
        radius=radius,
        k=k,
        neighbours=neighbours,
    )
