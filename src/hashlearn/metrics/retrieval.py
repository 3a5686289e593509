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

from hashlearn.core.arrays import FloatArray, IntArray
from hashlearn.core.checks import require_k, require_radius
from hashlearn.core.names import require_choice
from hashlearn.metrics.counting import Counts, count_pairs, make_task, ratio
from hashlearn.metrics.tie_rules import expected_hits, expected_sums, expected_top_k_average, harmonic_numbers

AVERAGES, TIES = ("plain", "trapezoid", "top_k"), ("expected", "stable")


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """One point for each radius 0, 1, …, 8 · bytes. Beyond n_bits (pad bits) the last point repeats."""

    radius: IntArray
    precision: FloatArray
    recall: FloatArray
    retrieved: IntArray  # pairs within the radius, over all queries


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of `evaluate`: fractions in [0, 1], None for what was not requested.

    ``per_query`` holds an array with one value for each query under the name of each function that was computed:
    "average_precision", "precision_within_radius", "precision_at_k", "recall_at_k" and "knn_accuracy" (0 or 1).
    """

    per_query: dict[str, FloatArray]
    curve: PrecisionRecallCurve  # of all pairs, by radius
    mean_average_precision: float
    precision_within_radius: float
    precision_at_k: float | None = None
    recall_at_k: float | None = None
    knn_accuracy: float | None = None


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
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    n = task.n_database
    require_choice(ties, "ties", TIES)
    require_choice(average, "average", AVERAGES)
    require_radius(radius)
    for name, count in (("top_k", top_k), ("k", k), ("neighbors", neighbors)):
        if count is not None:
            require_k(count, n, name)
    if average == "top_k" and top_k is None:
        raise ValueError("average='top_k' divides by the hits among the first top_k items: give top_k")
    if neighbors is not None and task.n_classes == 0:
        raise ValueError("knn_accuracy needs one class for each sample: labels must be 1-D, not 0/1 indicators")
    stable = ties == "stable"
    harmonic = harmonic_numbers(0 if stable else n)

    def finish(counts: Counts) -> tuple[dict[str, FloatArray], IntArray]:
        retrieved, relevant = (part[:, : radius + 1].sum(axis=1) for part in (counts.retrieved, counts.relevant))
        values = {
            "average_precision": _average_precision(counts, stable, average, top_k or n, harmonic),
            "precision_within_radius": ratio(relevant, retrieved),
        }
        if k is not None:
            hits = counts.k_hits / 1.0 if stable else expected_hits(counts.retrieved, counts.relevant, k)
            values |= {"precision_at_k": hits / k, "recall_at_k": ratio(hits, counts.n_relevant)}
        if neighbors is not None:
            values["knn_accuracy"] = (counts.predicted == counts.actual).astype(np.float64)
        return values, np.stack([counts.retrieved.sum(axis=0), counts.relevant.sum(axis=0)])

    parts = count_pairs(task, finish, database_order=stable, top_k=top_k, k=k, voters=neighbors or 0)
    per_query = {name: np.concatenate([values[name] for values, _ in parts]) for name in parts[0][0]}
    means = {name: float(values.mean()) for name, values in per_query.items()}
    retrieved, relevant = np.cumsum(np.sum([totals for _, totals in parts], axis=0), axis=1)
    precision, recall = ratio(relevant, retrieved), ratio(relevant, np.full_like(relevant, relevant[-1]))
    curve = PrecisionRecallCurve(np.arange(len(retrieved)), precision, recall, retrieved)
    return Evaluation(per_query, curve, means.pop("average_precision"), **means)


def mean_average_precision(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    ties: str = "expected",
    average: str = "plain",
    top_k: int | None = None,
) -> float:
    """Mean average precision of packed codes, a fraction in [0, 1].

    Parameters
    ----------
    query_codes, database_codes : uint8 arrays (n_samples, n_bytes), packed.
    query_labels, database_labels : classes (n_samples,), or 0/1 indicators (n_samples, n_labels) where sharing any
        label makes an item relevant.
    ties : "expected" or "stable": the order of items at equal distance.
    average : "plain", "trapezoid" or "top_k": see the formulas in `hashlearn.metrics.retrieval`.
    top_k : only the first ``top_k`` ranks count.

    >>> database = np.array([[0b0000], [0b0001], [0b0001], [0b0011]], dtype=np.uint8)
    >>> mean_average_precision(database[:1], database, ["a"], ["a", "b", "a", "b"])  # (1 + (2/2 + 2/3)/2) / 2
    0.9166666666666666
    >>> mean_average_precision(database[:1], database, ["a"], ["a", "b", "a", "b"], ties="stable")  # (1 + 2/3) / 2
    0.8333333333333333
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return evaluate(*data, ties=ties, average=average, top_k=top_k).mean_average_precision


def average_precision(
    query_codes: Any,
    database_codes: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    ties: str = "expected",
    average: str = "plain",
    top_k: int | None = None,
) -> FloatArray:
    """Average precision of each query, shape (n_queries,); parameters as in `mean_average_precision`.

    >>> codes = np.array([[0b00], [0b11]], dtype=np.uint8)
    >>> average_precision(codes, codes, [0, 1], [0, 0])
    array([1., 0.])
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return evaluate(*data, ties=ties, average=average, top_k=top_k).per_query["average_precision"]


def precision_within_radius(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, radius: int = 2
) -> float:
    """Fraction of relevant items among those at distance ``radius`` or less, averaged over all queries.

    With the default radius it is the paper's precision@2. A query that finds nothing counts 0. `evaluate`
    returns the values of each query.

    >>> database = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> precision_within_radius(database[:1], database, [1], [1, 0, 1], radius=2)
    0.5
    """
    return evaluate(query_codes, database_codes, query_labels, database_labels, radius=radius).precision_within_radius


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
    return evaluate(query_codes, database_codes, query_labels, database_labels).curve


def precision_at_k(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, k: int, ties: str = "expected"
) -> float:
    """hits(k)/k: the fraction of relevant items among the k nearest, averaged over all queries.

    ``ties`` says which items at the distance of rank k are taken: "expected" averages over all orders, "stable" takes
    them in database order. `evaluate` returns the values of each query.

    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> precision_at_k(database[:1], database, [1], [1, 0, 1], k=2)  # 1 for sure and then 1 or 0
    0.75
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return float(evaluate(*data, k=k, ties=ties).per_query["precision_at_k"].mean())


def recall_at_k(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, k: int, ties: str = "expected"
) -> float:
    """hits(k)/R: the fraction of the R relevant items of the database that are among the k nearest.

    This is averaged over all queries; those with R = 0 count 0. ``ties`` as in `precision_at_k`.

    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> recall_at_k(database[:1], database, [1], [1, 0, 1], k=2)
    0.75
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return float(evaluate(*data, k=k, ties=ties).per_query["recall_at_k"].mean())


def knn_accuracy(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, neighbors: int = 4
) -> float:
    """Fraction of queries whose class is the majority vote of ``neighbors`` nearest database items.

    Items at equal distance are taken in database order, because the mean over all orders has no simple formula. If
    classes have equal votes, the smaller sum of distances wins, then the smaller label. Labels must be classes.

    >>> database = np.array([[0b0000], [0b0001], [0b1111]], dtype=np.uint8)
    >>> knn_accuracy(database[:1], database, ["cat"], ["cat", "cat", "dog"], neighbors=3)
    1.0
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return float(evaluate(*data, neighbors=neighbors).per_query["knn_accuracy"].mean())


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
