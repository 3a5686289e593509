"""Recall of given neighbors, against brute force over all orders of equal codes."""

from __future__ import annotations

import numpy as np
import pytest

from hashlearn import metrics
from hashlearn.bits import pack_bits
from hashlearn.bits.hamming import hamming_distances


def brute_force(queries, database, truth, k):
    """The mean over many random orders of equal codes."""
    rng = np.random.default_rng(0)
    distances = hamming_distances(queries, database)
    hits = []
    for _ in range(4000):
        order = np.lexsort((rng.random(distances.shape), distances), axis=1)[:, :k]
        hits.append([np.isin(t, o).mean() for t, o in zip(truth, order, strict=True)])
    return np.mean(hits)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_is_the_expectation_over_all_orders(k):
    rng = np.random.default_rng(1)
    database, queries = (pack_bits(rng.integers(0, 2, (n, 5), dtype=np.uint8)) for n in (12, 3))
    truth = np.array([rng.choice(12, 4, replace=False) for _ in range(3)])
    expected = brute_force(queries, database, truth, k)
    assert metrics.neighbor_recall(queries, database, truth, k=k) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("neighbors", "k", "words"),
    [
        ([[4]], 1, "rows of the database, 0 to 3"),
        ([[-1]], 1, "rows of the database"),
        ([0], 1, "shape"),
        ([[0.5]], 1, "row numbers"),
        ([[0], [1]], 1, "shape"),
        ([[0]], 0, "k"),
        ([[0]], 5, "k"),
    ],
)
def test_bad_input(neighbors, k, words):
    database = np.arange(4, dtype=np.uint8)[:, None]
    with pytest.raises(ValueError, match=words):
        metrics.neighbor_recall(database[:1], database, neighbors, k=k)
