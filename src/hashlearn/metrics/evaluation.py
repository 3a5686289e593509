"""Several metrics from one pass over the pairs of queries and database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import require_k, require_radius
from hashlearn.metrics.average_precision import finisher, require_conventions
from hashlearn.metrics.counting import CountArray, Counts, count_pairs, ratio
from hashlearn.metrics.inputs import make_task
from hashlearn.metrics.retrieval import (
    PrecisionRecallCurve,
    curve_of_totals,
    hits_finisher,
    require_vote,
    totals,
    voted_rightly,
    within,
)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of `evaluate`: fractions in [0, 1], None for what was not requested.

    ``per_query`` holds an array with one value for each query under the name of each function that was computed:
    "average_precision", "precision_within_radius", "precision_at_k", "recall_at_k" and "knn_accuracy" (0 or 1).
    """

    mean_average_precision: float
    precision_within_radius: float
    precision_at_k: float | None
    recall_at_k: float | None
    knn_accuracy: float | None
    curve: PrecisionRecallCurve  # of all pairs, by radius
    per_query: dict[str, FloatArray]


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
    neighbors: int | None = None,
) -> Evaluation:
    """Mean average precision, precision within ``radius`` and the precision–recall curve, in one pass.

    ``k`` adds precision and recall among the k nearest. ``neighbors`` adds the accuracy of a vote of that many nearest
    items (classes only). Each number equals that of the function of its name with the same arguments.

    >>> database = np.array([[0b0000], [0b0001], [0b1110]], dtype=np.uint8)
    >>> found = evaluate(database[:1], database, [1], [1, 0, 1], neighbors=1)
    >>> found.mean_average_precision, found.precision_within_radius, found.knn_accuracy
    (0.8333333333333333, 0.5, 1.0)
    """
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_conventions(task, ties, average, top_k)
    require_radius(radius)
    if k is not None:
        require_k(k, task.n_database)
    if neighbors is not None:
        require_vote(task, neighbors, "neighbors")
    precisions = finisher(task.n_database, ties, average, top_k)

    def finish(counts: Counts) -> tuple[CountArray, dict[str, FloatArray]]:
        values = {"average_precision": precisions(counts), "precision_within_radius": within(counts, radius)}
        if k is not None:
            hits = hits_finisher(counts, k, ties)
            values |= {"precision_at_k": hits / k, "recall_at_k": ratio(hits, counts.n_relevant)}
        if neighbors is not None:
            values["knn_accuracy"] = voted_rightly(counts)
        return totals(counts), values

    stable = ties == "stable"
    parts = count_pairs(task, finish, database_order=stable, top_k=top_k, k=k, voters=neighbors or 0)
    curve = curve_of_totals(np.sum([part[0] for part in parts], axis=0))
    per_query = {name: np.concatenate([values[name] for _, values in parts]) for name in parts[0][1]}
    means = {name: float(values.mean()) for name, values in per_query.items()}
    return Evaluation(
        means["average_precision"],
        means["precision_within_radius"],
        means.get("precision_at_k"),
        means.get("recall_at_k"),
        means.get("knn_accuracy"),
        curve,
        per_query,
    )
