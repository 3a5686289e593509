"""A few queries with their nearest images by one method, for people to look at. Images are stored as raw bytes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import hamming_distances
from hashlearn.experiments.bench.protocols import Split
from hashlearn.experiments.datasets import DataSet

SHOWN_QUERIES = 6
NEAREST = 8


def gallery(
    data: DataSet, split: Split, database_codes: NDArray[np.uint8], query_codes: NDArray[np.uint8]
) -> dict[str, Any] | None:
    """The first query of each of six classes and its eight nearest (ties by index); None for data without images.

    The choice of queries depends on the split alone, so they are the same for every method.
    """
    if data.images is None:
        return None
    shown = shown_queries(data.y[split.queries])
    distances = hamming_distances(query_codes[shown], database_codes)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :NEAREST]
    return {
        "image_shape": list(data.images.shape[1:]),
        "queries": [
            {
                **_picture(data, split.queries[query]),
                "neighbours": [
                    {**_picture(data, split.database[item]), "distance": int(distances[row, item])}
                    for item in nearest[row]
                ],
            }
            for row, query in enumerate(shown)
        ],
    }


def shown_queries(labels: NDArray[np.int64]) -> NDArray[np.intp]:
    """The first query of each of six classes that are spread evenly over all.

    >>> shown_queries(np.array([1, 0, 0, 1, 2]))
    array([1, 0, 4])
    """
    classes, first = np.unique(labels, return_index=True)
    chosen = np.linspace(0, len(classes) - 1, min(SHOWN_QUERIES, len(classes))).round().astype(np.intp)
    return first[chosen]


def _picture(data: DataSet, row: int) -> dict[str, str]:
    assert data.images is not None
    raw = np.ascontiguousarray(data.images[row], dtype=np.uint8).tobytes()
    return {"image": base64.b64encode(raw).decode("ascii"), "label": str(data.class_names[data.y[row]])}
