"""The nearest among some of the codes, for filters: exact, whatever the engine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import IdArray, no_ids, order_of
from hashlearn.search.interface import NOWHERE, SearchResult
from hashlearn.search.scan import Scan


def ranked(
    queries: NDArray[np.uint8], codes: NDArray[np.uint8], ids: IdArray, n_bits: int, k: int, id_type: str
) -> SearchResult:
    """The k nearest of each query among these codes, ties by id. With fewer than k codes the last places hold nothing.

    >>> ranked(np.array([[7]], np.uint8), np.array([[3], [6]], np.uint8), np.array([9, 4]), 8, 3, "int64").indices
    array([[ 4,  9, -1]])
    """
    indices, distances = no_ids((len(queries), k), id_type), np.full((len(queries), k), NOWHERE, np.int32)
    kept = min(k, len(ids))
    if kept:
        order = order_of(ids)
        rows, distances[:, :kept] = Scan(codes[order], n_bits).nearest(queries, kept)
        indices[:, :kept] = ids[order][rows]
    return SearchResult(indices, distances)
