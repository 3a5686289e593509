"""Every measure of a Hamming ranking with labels, from one pass over the pairs of queries and database.

A query ranks the whole database by distance. Let rel(i) be 1 if the item at rank i is relevant, hits(i) the number of
relevant items up to rank i, P(i) = hits(i)/i the precision there, and R the number of relevant items in the database.
K is ``top_k``, or the size of the database if that is None. Average precision has three conventions:

====================  =================================================================================================
``average``           value
====================  =================================================================================================
``"plain"``           Σ_{i ≤ K} rel(i) P(i) / min(R, K), averaged over all queries; a query with R = 0 counts 0
``"trapezoid"``       Σ_{i ≤ K} rel(i) (P(i − 1) + P(i)) / 2 / min(R, K) with P(0) = 1: the area under the query's
                      precision–recall curve by trapezoids from rank to rank, from the point (recall 0, precision 1).
                      Recall changes at relevant items only, by 1/R. The paper's authors use it in their public code
``"top_k"``           Σ_{i ≤ K} rel(i) P(i) / hits(K): divided by the number found, not by the number that exists; 0
                      if nothing was found. Needs ``top_k``
====================  =================================================================================================

``ties`` orders items at equal distance. ``"expected"`` is the exact mean over all their orders. ``"stable"`` takes them
in database order, as a stable sort and the paper's authors do. A radius includes all items at a distance or none of
them, so it needs no tie rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import require_k, require_radius
from hashlearn.core.names import require_choice
from hashlearn.metrics.counting import CountArray, Counts, count_pairs, ratio
from hashlearn.metrics.inputs import make_task
from hashlearn.metrics.tie_rules import TIES, expected_hits, expected_sums, expected_top_k_average, harmonic_numbers

AVERAGES = ("plain", "trapezoid", "top_k")


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """One point for each radius 0, 1, …, 8 · bytes. Beyond n_bits (pad bits) the last point repeats."""

    radius: CountArray
    precision: FloatArray
    recall: FloatArray
    retrieved: CountArray  # pairs within the radius, over all queries


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
    >>> quality = evaluate(database[:1], database, [1], [1, 0, 1], neighbors=1)
    >>> quality.mean_average_precision, quality.precision_within_radius, quality.knn_accuracy
    (0.8333333333333333, 0.5, 1.0)
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    names = ["average_precision", "precision_within_radius"]
    names += [] if k is None else ["precision_at_k", "recall_at_k"]
    names += [] if neighbors is None else ["knn_accuracy"]
    options = {"ties": ties, "average": average, "top_k": top_k, "radius": radius, "k": k, "neighbors": neighbors}
    per_query, curve = measure(data, names, **options)
    means = {name: float(values.mean()) for name, values in per_query.items()}
    means["mean_average_precision"] = means.pop("average_precision")
    missing = dict.fromkeys(("precision_at_k", "recall_at_k", "knn_accuracy"))
    return Evaluation(**{**missing, **means}, curve=curve, per_query=per_query)


def measure(
    data: tuple[Any, Any, Any, Any],
    names: list[str],
    ties: str = "expected",
    average: str = "plain",
    top_k: int | None = None,
    radius: int = 2,
    k: int | None = None,
    neighbors: int | None = None,
) -> tuple[dict[str, FloatArray], PrecisionRecallCurve]:
    """The measures of these names for each query, and the curve of all pairs; options as in `evaluate`."""
    task = make_task(*data)
    n = task.n_database
    require_choice(ties, "ties", TIES)
    require_choice(average, "average", AVERAGES)
    require_radius(radius)
    for name, count in (("top_k", top_k), ("k", k), ("neighbors", neighbors)):
        if count is not None:
            require_k(count, n, name)
    if average == "top_k" and top_k is None:
        raise ValueError("average='top_k' divides by the hits among the first top_k items: give top_k")
    if neighbors is not None and task.classes == 0:
        raise ValueError("knn_accuracy needs one class for each sample: labels must be 1-D, not 0/1 indicators")
    stable = ties == "stable"
    harmonic = harmonic_numbers(n if "average_precision" in names and not stable else 0)

    def hits(counts: Counts) -> FloatArray:
        return counts.k_hits / 1.0 if stable else expected_hits(counts.retrieved, counts.relevant, k)

    measures = {
        "average_precision": lambda counts: _average_precision(counts, stable, average, top_k or n, harmonic),
        "precision_within_radius": lambda counts: _precision_within(counts, radius),
        "precision_at_k": lambda counts: hits(counts) / k,
        "recall_at_k": lambda counts: ratio(hits(counts), counts.n_relevant),
        "knn_accuracy": lambda counts: (counts.predicted == counts.actual).astype(np.float64),
    }

    def finish(counts: Counts) -> tuple[dict[str, FloatArray], CountArray]:
        totals = np.stack([counts.retrieved.sum(axis=0), counts.relevant.sum(axis=0)])
        return {name: measures[name](counts) for name in names}, totals

    parts = count_pairs(task, finish, database_order=stable, top_k=top_k, k=k, voters=neighbors or 0)
    per_query = {name: np.concatenate([values[name] for values, _ in parts]) for name in names}
    retrieved, relevant = np.cumsum(np.sum([totals for _, totals in parts], axis=0), axis=1)
    precision, recall = ratio(relevant, retrieved), ratio(relevant, np.full_like(relevant, relevant[-1]))
    return per_query, PrecisionRecallCurve(np.arange(len(retrieved)), precision, recall, retrieved)


def _average_precision(counts: Counts, stable: bool, average: str, last: int, harmonic: FloatArray) -> FloatArray:
    """Average precision of each query of a block, among the first ``last`` ranks."""
    if stable:
        at, before = counts.precision_sum, counts.before_sum
    elif average == "top_k":
        averages: FloatArray = expected_top_k_average(counts.retrieved, counts.relevant, last, harmonic)
        return averages
    else:
        at, before = expected_sums(counts.retrieved, counts.relevant, last, harmonic)
    total = 0.5 * (at + before) if average == "trapezoid" else at
    return ratio(total, counts.top_k_hits if average == "top_k" else np.minimum(counts.n_relevant, last))


def _precision_within(counts: Counts, radius: int) -> FloatArray:
    """Precision within the radius for each query of a block."""
    last = min(radius, counts.retrieved.shape[1] - 1) + 1
    return ratio(counts.relevant[:, :last].sum(axis=1), counts.retrieved[:, :last].sum(axis=1))
