"""Pure functions on packed codes and labels: how good is a Hamming ranking?

Most take ``(query_codes, database_codes, query_labels, database_labels)``, codes as ``encode`` returns them, and
return fractions in [0, 1]. Distances are counted, never sorted, and no array of queries × database is formed.
`recall_of_neighbors` takes the results of any search, and needs no labels.

>>> import numpy as np
>>> database = np.array([[0b0000], [0b0001], [0b0011], [0b0111]], dtype=np.uint8)
>>> mean_average_precision(database[:1], database, ["a"], ["a", "a", "b", "b"])
1.0
>>> precision_within_radius(database[:1], database, ["a"], ["a", "a", "b", "b"], radius=2)
0.6666666666666666
"""

from __future__ import annotations

from hashlearn.metrics.bit_statistics import BitStatistics, bit_statistics
from hashlearn.metrics.recall import float_neighbors, neighbor_recall, recall_of_neighbors, recalls_of_neighbors
from hashlearn.metrics.retrieval import (
    AVERAGES,
    TIES,
    Evaluation,
    PrecisionRecallCurve,
    average_precision,
    evaluate,
    knn_accuracy,
    mean_average_precision,
    precision_at_k,
    precision_recall_curve,
    precision_within_radius,
    recall_at_k,
)

__all__ = [
    "AVERAGES",
    "TIES",
    "BitStatistics",
    "Evaluation",
    "PrecisionRecallCurve",
    "average_precision",
    "bit_statistics",
    "evaluate",
    "float_neighbors",
    "knn_accuracy",
    "mean_average_precision",
    "neighbor_recall",
    "precision_at_k",
    "precision_recall_curve",
    "precision_within_radius",
    "recall_at_k",
    "recall_of_neighbors",
    "recalls_of_neighbors",
]
