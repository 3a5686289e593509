"""Average precision of a Hamming ranking: three conventions and two tie rules, by name.

A query ranks the whole database by distance. Let rel(i) be 1 if the item at rank i is relevant, hits(i) the number of
relevant items up to rank i, P(i) = hits(i)/i the precision there, and R the number of relevant items in the database.
K is ``top_k``, or the size of the database if that is None.

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
in database order, as a stable sort and the paper's authors do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import require_k
from hashlearn.core.names import require_choice
from hashlearn.metrics.counting import Counts, count_pairs, ratio
from hashlearn.metrics.inputs import Task, make_task
from hashlearn.metrics.tie_rules import TIES, expected_sums, expected_top_k_average, harmonic_numbers

AVERAGES = ("plain", "trapezoid", "top_k")


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
    average : "plain", "trapezoid" or "top_k": see the formulas in the module docstring.
    top_k : only the first ``top_k`` ranks count.

    >>> database = np.array([[0b0000], [0b0001], [0b0001], [0b0011]], dtype=np.uint8)
    >>> mean_average_precision(database[:1], database, ["a"], ["a", "b", "a", "b"])  # (1 + (2/2 + 2/3)/2) / 2
    0.9166666666666666
    >>> mean_average_precision(database[:1], database, ["a"], ["a", "b", "a", "b"], ties="stable")  # (1 + 2/3) / 2
    0.8333333333333333
    """
    arguments = (query_codes, database_codes, query_labels, database_labels)
    return float(average_precision(*arguments, ties=ties, average=average, top_k=top_k).mean())


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
    task = make_task(query_codes, database_codes, query_labels, database_labels)
    require_conventions(task, ties, average, top_k)
    finish = finisher(task.n_database, ties, average, top_k)
    return np.concatenate(count_pairs(task, finish, database_order=ties == "stable", top_k=top_k))


def require_conventions(task: Task, ties: str, average: str, top_k: int | None) -> None:
    """Refuse unknown names and combinations that have no value."""
    require_choice(ties, "ties", TIES)
    require_choice(average, "average", AVERAGES)
    if top_k is not None:
        require_k(top_k, task.n_database, "top_k")
    if average == "top_k" and top_k is None:
        raise ValueError("average='top_k' divides by the hits among the first top_k items: give top_k")


def finisher(n_database: int, ties: str, average: str, top_k: int | None) -> Callable[[Counts], FloatArray]:
    """The function that turns the counts of a block into the average precision of each of its queries."""
    last = n_database if top_k is None else top_k
    harmonic = harmonic_numbers(0 if ties == "stable" else n_database)

    def finish(counts: Counts) -> FloatArray:
        if ties == "stable":
            at, before = counts.precision_sum, counts.before_sum
        elif average == "top_k":
            averages: FloatArray = expected_top_k_average(counts.retrieved, counts.relevant, last, harmonic)
            return averages
        else:
            at, before = expected_sums(counts.retrieved, counts.relevant, last, harmonic)
        total = 0.5 * (at + before) if average == "trapezoid" else at
        best = counts.top_k_hits if average == "top_k" else np.minimum(counts.n_relevant, last)
        return ratio(total, best)

    return finish
