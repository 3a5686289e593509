"""Other libraries' codes, measured beside ours: the product quantizer of FAISS. They are never chosen."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.compression.contenders import Contender, Ranks, Rows
from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.linalg.unit_rows import scale_to_unit, typical_norm

BITS_EACH = 8
SCORES_AT_ONCE = 8_000_000


def product_quantizers(sizes: Iterable[int], rows: Rows, progress: ProgressCallback | None) -> Iterator[Contender]:
    """Jégou, Douze, Schmid 2011: a byte for each part of a row. Rows of cosine are brought to unit length first."""
    faiss = require("faiss", "faiss", "peers=True")
    database, choosing, testing = (
        _prepared(part, rows.metric) for part in (rows.database, rows.choosing, rows.testing)
    )
    n, n_features = database.shape
    for n_parts in sorted(sizes):
        if n_parts > n_features or n < 2**BITS_EACH:
            continue
        tell(progress, f"FAISS PQ, {n_parts} bytes", 0, None)
        padding = ((0, 0), (0, -n_features % n_parts))
        quantizer = faiss.ProductQuantizer(n_features + padding[1][1], n_parts, BITS_EACH)
        quantizer.cp.min_points_per_centroid = 1  # else FAISS warns on standard error
        padded = np.pad(database, padding)
        began = time.perf_counter()
        quantizer.train(padded)
        seconds = time.perf_counter() - began
        decoded = quantizer.decode(quantizer.compute_codes(padded))[:, :n_features]
        ranks = (
            _ranks(queries, decoded, true)
            for queries, true in ((choosing, rows.true_choosing), (testing, rows.true_testing))
        )
        yield Contender("FAISS PQ", "asymmetric", n_parts, seconds, *ranks)


def _prepared(part: NDArray[Any], metric: str) -> NDArray[np.float32]:
    rows = np.array(part, np.float32, order="C")
    unit: NDArray[np.float32] = scale_to_unit(rows, typical_norm(rows)) if metric == "cosine" else rows
    return unit


def _ranks(queries: NDArray[np.float32], decoded: NDArray[np.float32], true: Ranks) -> Ranks:
    """The place of each true neighbor by Euclidean distance to the decoded rows; ties by row, as FAISS has them."""
    halves = 0.5 * np.einsum("ij,ij->i", decoded, decoded)
    ranks, numbers = np.empty(true.shape, np.int64), np.arange(len(decoded))
    step = max(1, SCORES_AT_ONCE // len(decoded))
    for first in range(0, len(queries), step):
        scores = queries[first : first + step] @ decoded.T - halves
        rows = true[first : first + step]
        for place in range(true.shape[1]):
            limit = np.take_along_axis(scores, rows[:, place, None], axis=1)
            before = (scores > limit) | ((scores == limit) & (numbers <= rows[:, place, None]))
            ranks[first : first + step, place] = before.sum(axis=1)
    return ranks
