"""Single measures of a Hamming ranking with labels. `evaluate` computes several in one pass and states the formulas."""

from __future__ import annotations

from typing import Any

from hashlearn.core.arrays import FloatArray
from hashlearn.metrics.evaluation import PrecisionRecallCurve, measure


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
    average : "plain", "trapezoid" or "top_k": see the formulas in `hashlearn.metrics.evaluation`.
    top_k : only the first ``top_k`` ranks count.

    >>> import numpy as np
    >>> database = np.array([[0b0000], [0b0001], [0b0001], [0b0011]], dtype=np.uint8)
    >>> mean_average_precision(database[:1], database, ["a"], ["a", "b", "a", "b"])  # (1 + (2/2 + 2/3)/2) / 2
    0.9166666666666666
    >>> mean_average_precision(database[:1], database, ["a"], ["a", "b", "a", "b"], ties="stable")  # (1 + 2/3) / 2
    0.8333333333333333
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return float(average_precision(*data, ties=ties, average=average, top_k=top_k).mean())


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

    >>> import numpy as np
    >>> codes = np.array([[0b00], [0b11]], dtype=np.uint8)
    >>> average_precision(codes, codes, [0, 1], [0, 0])
    array([1., 0.])
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    name = "average_precision"
    return measure(data, [name], ties=ties, average=average, top_k=top_k)[0][name]


def precision_within_radius(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, radius: int = 2
) -> float:
    """Fraction of relevant items among those at distance ``radius`` or less, averaged over all queries.

    With the default radius it is the paper's precision@2. A query that finds nothing counts 0. `evaluate`
    returns the values of each query.

    >>> import numpy as np
    >>> database = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> precision_within_radius(database[:1], database, [1], [1, 0, 1], radius=2)
    0.5
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return _mean(data, "precision_within_radius", radius=radius)


def precision_recall_curve(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any
) -> PrecisionRecallCurve:
    """Precision and recall within each radius, of all pairs of all queries as one set.

    Precision counts 0 if nothing is found, and so does recall if nothing is relevant.

    >>> import numpy as np
    >>> database = np.array([[0b0000], [0b0001], [0b0111]], dtype=np.uint8)
    >>> curve = precision_recall_curve(database[:1], database, [1], [1, 0, 1])
    >>> curve.precision[:4].round(3), curve.recall[:4]
    (array([1.   , 0.5  , 0.5  , 0.667]), array([0.5, 0.5, 0.5, 1. ]))
    """
    return measure((query_codes, database_codes, query_labels, database_labels), [])[1]


def precision_at_k(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, k: int, ties: str = "expected"
) -> float:
    """hits(k)/k: the fraction of relevant items among the k nearest, averaged over all queries.

    ``ties`` says which items at the distance of rank k are taken: "expected" averages over all orders, "stable" takes
    them in database order. `evaluate` returns the values of each query.

    >>> import numpy as np
    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> precision_at_k(database[:1], database, [1], [1, 0, 1], k=2)  # 1 for sure and then 1 or 0
    0.75
    """
    data = (query_codes, database_codes, query_labels, database_labels)
    return _mean(data, "precision_at_k", k=k, ties=ties)


def recall_at_k(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, k: int, ties: str = "expected"
) -> float:
    """hits(k)/R: the fraction of the R relevant items of the database that are among the k nearest.

    This is averaged over all queries; those with R = 0 count 0. ``ties`` as in `precision_at_k`.

    >>> import numpy as np
    >>> database = np.array([[0b0000], [0b0001], [0b0010]], dtype=np.uint8)
    >>> recall_at_k(database[:1], database, [1], [1, 0, 1], k=2)
    0.75
    """
    return _mean((query_codes, database_codes, query_labels, database_labels), "recall_at_k", k=k, ties=ties)


def knn_accuracy(
    query_codes: Any, database_codes: Any, query_labels: Any, database_labels: Any, *, neighbors: int = 4
) -> float:
    """Fraction of queries whose class is the majority vote of so many nearest database items.

    Items at equal distance are taken in database order, because the mean over all orders has no simple formula. If
    classes have equal votes, the smaller sum of distances wins, then the smaller label. Labels must be classes.

    >>> import numpy as np
    >>> database = np.array([[0b0000], [0b0001], [0b1111]], dtype=np.uint8)
    >>> knn_accuracy(database[:1], database, ["cat"], ["cat", "cat", "dog"], neighbors=3)
    1.0
    """
    return _mean((query_codes, database_codes, query_labels, database_labels), "knn_accuracy", neighbors=neighbors)


def _mean(data: tuple[Any, Any, Any, Any], name: str, **options: Any) -> float:
    return float(measure(data, [name], **options)[0][name].mean())
