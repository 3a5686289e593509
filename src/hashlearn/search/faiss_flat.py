"""FAISS's exact search with our rules: any number of bits, radius inclusive, ties by row.

FAISS takes whole bytes (ours are padded with zero bits already), means "nearer than" by a radius, checks widths by
``assert`` and promises nothing about which of equally near items it returns at the k-th place. So one more neighbour
is asked for than wanted; where the distance goes on after the k-th place, everything at that distance is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hashlearn.core.packages import require
from hashlearn.search.engines import ByteArray, DistanceArray, Engine, RowArray

HITS_PER_BATCH = 20_000_000


@dataclass(frozen=True)
class FaissFlat:
    """FAISS ``IndexBinaryFlat``: exact."""

    name: ClassVar[str] = "faiss_flat"
    exact: ClassVar[bool] = True

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""
        faiss = load_faiss(self.name)
        index = faiss.IndexBinaryFlat(8 * codes.shape[1])
        index.add(codes)
        return FlatEngine(index)


class FlatEngine:
    """A flat index of FAISS, with ties by row and an inclusive radius."""

    def __init__(self, index: Any) -> None:
        self.index = index

    def extend(self, codes: ByteArray) -> bool:
        """Take in more codes behind the others."""
        self.index.add(codes)
        return True

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        """The k nearest by (distance, row)."""
        if len(queries) == 0:
            return np.empty((0, k), np.int64), np.empty((0, k), np.int32)
        distances, rows = self.index.search(queries, min(k + 1, self.index.ntotal))
        rows, distances = in_order(rows, distances)
        unsettled = distances[:, k - 1] == distances[:, -1] if distances.shape[1] > k else np.zeros(len(queries), bool)
        rows, distances = rows[:, :k].copy(), distances[:, :k].copy()
        step = max(1, HITS_PER_BATCH // self.index.ntotal)
        for radius in np.unique(distances[unsettled, -1]):
            those = np.flatnonzero(unsettled & (distances[:, -1] == radius))
            for first in range(0, len(those), step):
                batch = those[first : first + step]
                limits, found, near = self.within(queries[batch], int(radius))
                places = limits[:-1, None] + np.arange(k)
                rows[batch], distances[batch] = found[places], near[places]
        return rows, distances

    def within(self, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
        """All items at most ``radius`` away."""
        return inclusive_range(self.index, queries, radius)


def inclusive_range(index: Any, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
    """FAISS's range search, whose radius is exclusive, made inclusive and put in order."""
    if len(queries) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32)
    limits, distances, rows = index.range_search(queries, min(radius, index.d) + 1)
    limits, distances = limits.astype(np.int64), distances.astype(np.int32)
    query = np.repeat(np.arange(len(queries)), np.diff(limits))
    order = np.lexsort((rows, distances, query))
    return limits, rows[order].astype(np.int64), distances[order]


def in_order(rows: Any, distances: Any) -> tuple[RowArray, DistanceArray]:
    """Each query's items by distance and then by row; FAISS gives what it did not find the largest distance."""
    order = np.lexsort((rows, distances), axis=1)
    rows, distances = (np.take_along_axis(array, order, axis=1) for array in (rows, distances))
    return rows.astype(np.int64, copy=False), distances.astype(np.int32, copy=False)


def load_faiss(backend: str) -> Any:
    """The package, or a hint on how to install it."""
    return require("faiss", "faiss", f"backend {backend!r}")


@contextmanager
def one_faiss_thread(faiss: Any) -> Iterator[None]:
    """Inside, FAISS builds with one thread: with several, its graphs and clusters depend on which is faster."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
