"""FAISS: an exact scan, and three approximate searches (inverted lists, a neighbor graph, multi-index hashing).

FAISS takes whole bytes (our codes are padded with zero bits already), reads a radius as "nearer than", and may return
any of several equally near items at the k-th place. `FlatEngine` restores our rules: radius inclusive, ties by row.

Approximate searches miss a part of the neighbors to save time; `benchmarks/search_engines.py` measures both. They are
built with one thread, so the same codes give the same answers. A search by radius is exact with every backend:
multi-index hashing finds everything within n_hashes · (flips + 1) − 1 by the pigeonhole principle (Norouzi, Punjani,
Fleet 2012), and an engine that cannot guarantee the radius scans all codes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from hashlearn.core.checks import whole_number
from hashlearn.core.packages import require
from hashlearn.search.ids import NOTHING
from hashlearn.search.interface import MOST_BITS, NOWHERE, ByteArray, DistanceArray, Engine, RowArray
from hashlearn.search.scan import Scan

HITS_PER_BATCH = 20_000_000
CODES_PER_LIST = 39  # with fewer, FAISS warns that its clusters are badly trained
GROWTH_BEFORE_REBUILD = 4
MOST_FLIPS = 2  # in a search by radius; the number of buckets to read grows as bits ** flips
# Upper limits of settings. FAISS allocates ``search_width`` candidates in every thread and ``n_links`` neighbors for
# every code, and reads about bits ** flips buckets for each query.
MOST = {
    "n_lists": 2**20,
    "n_probes": 2**20,
    "n_links": 512,
    "build_width": 2**14,
    "search_width": 2**18,
    "n_hashes": MOST_BITS,
    "flips": 4,
}


@dataclass(frozen=True)
class FaissFlat:
    """FAISS ``IndexBinaryFlat``: exact."""

    name: ClassVar[str] = "faiss_flat"
    exact: ClassVar[bool] = True

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""
        index = self.empty(codes)
        index.add(codes)
        return FlatEngine(index)

    def empty(self, codes: ByteArray) -> Any:
        """An index of FAISS for codes of this width."""
        return _faiss(self.name).IndexBinaryFlat(8 * codes.shape[1])


@dataclass(frozen=True)
class FaissIVF:
    """FAISS ``IndexBinaryIVF``: codes in lists around cluster centers. Only the nearest lists are searched.

    ``n_lists`` None: 4 √n, or fewer so that every list has enough codes. ``n_probes`` None: a sixteenth of the lists.
    """

    n_lists: int | None = None
    n_probes: int | None = None
    name: ClassVar[str] = "faiss_ivf"
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_settings(self)

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""
        return _ApproximateEngine(_faiss(self.name), self.empty(codes), codes, n_bits)

    def empty(self, codes: ByteArray) -> Any:
        """An index of FAISS without codes, with lists for such codes as these."""
        faiss = _faiss(self.name)
        n_lists = self.n_lists or max(1, min(round(4 * len(codes) ** 0.5), len(codes) // CODES_PER_LIST))
        n_lists = min(n_lists, len(codes))
        centers = faiss.IndexBinaryFlat(8 * codes.shape[1])
        index = faiss.IndexBinaryIVF(centers, 8 * codes.shape[1], n_lists)
        index.cp.min_points_per_centroid = 1  # else it warns on stderr
        index.nprobe = min(n_lists, self.n_probes or max(1, n_lists // 16))
        with one_thread(faiss):
            index.train(codes)
        return index


@dataclass(frozen=True)
class FaissHNSW:
    """FAISS ``IndexBinaryHNSW``: a graph of ``n_links`` neighbors per code (Malkov, Yashunin 2018).

    A larger ``search_width`` finds more neighbors and takes longer; the search uses at least k.
    """

    n_links: int = 32
    build_width: int = 80
    search_width: int = 128
    name: ClassVar[str] = "faiss_hnsw"
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_settings(self, least=2)

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""
        return _GraphEngine(_faiss(self.name), self.empty(codes), codes, n_bits)

    def empty(self, codes: ByteArray) -> Any:
        """An index of FAISS without codes, for codes of this width."""
        index = _faiss(self.name).IndexBinaryHNSW(8 * codes.shape[1], self.n_links)
        index.hnsw.efConstruction, index.hnsw.efSearch = self.build_width, self.search_width
        return index


@dataclass(frozen=True)
class FaissMultiHash:
    """FAISS ``IndexBinaryMultiHash``: one hash table for each of ``n_hashes`` pieces of the code.

    A code is a candidate if one of its pieces differs from the query's piece in at most ``flips`` bits, so a query may
    find fewer than k. ``n_hashes`` None: pieces of about log₂ n bits.
    """

    n_hashes: int | None = None
    flips: int = 1
    name: ClassVar[str] = "faiss_multi_hash"
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_settings(self, least=0)
        if self.n_hashes == 0:
            raise ValueError("n_hashes must be None or an integer of at least 1, got 0")

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""
        faiss = _faiss(self.name)
        width = 8 * codes.shape[1]
        n_hashes = self.n_hashes or max(1, round(n_bits / max(4.0, np.log2(len(codes)))))
        n_hashes = min(max(n_hashes, -(-width // 62)), width)  # a piece is one number of 64 bits
        index = faiss.IndexBinaryMultiHash(width, n_hashes, width // n_hashes)
        index.nflip = min(self.flips, index.b)  # no piece has more bits to flip
        return _MultiHashEngine(faiss, index, codes, n_bits)


class FlatEngine:
    """A flat index of FAISS, with ties by row and an inclusive radius."""

    def __init__(self, index: Any) -> None:
        self.index = index

    def extend(self, codes: ByteArray) -> bool:
        """Append more codes."""
        self.index.add(codes)
        return True

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        """The k nearest by (distance, row).

        One item more than k is requested. If it is as near as the k-th, everything at that distance is fetched.
        """
        rows, distances = search_index(self.index, queries, min(k + 1, self.index.ntotal))
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
        return _range_search(self.index, queries, radius)


class _ApproximateEngine:
    growth: int | None = GROWTH_BEFORE_REBUILD  # rebuild instead of growing beyond this multiple of the first size

    def __init__(self, faiss: Any, index: Any, codes: ByteArray, n_bits: int) -> None:
        self.faiss, self.index, self.n_bits = faiss, index, n_bits
        self._codes: list[ByteArray] = []
        self._scan: Scan | None = None
        self._add(codes)

    def extend(self, codes: ByteArray) -> bool:
        if self.growth is not None and self.index.ntotal + len(codes) > self.growth * len(self._codes[0]):
            return False
        self._add(codes)
        return True

    def _add(self, codes: ByteArray) -> None:
        with one_thread(self.faiss):
            self.index.add(codes)
        self._codes.append(codes)
        self._scan = None

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        return search_index(self.index, queries, k)

    def within(self, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
        if self._scan is None:
            self._scan = Scan(np.concatenate(self._codes), self.n_bits)
        return self._scan.within(queries, radius)


class _GraphEngine(_ApproximateEngine):
    growth = None  # a graph grows as well as it is built


class _MultiHashEngine(_ApproximateEngine):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lock = threading.Lock()  # the number of flips is a property of the FAISS index

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        with self._lock:
            return super().nearest(queries, k)

    def within(self, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
        flips = radius // self.index.nhash
        if flips > min(MOST_FLIPS, self.index.b):
            return super().within(queries, radius)
        with self._lock:
            usual, self.index.nflip = self.index.nflip, flips
            try:
                return _range_search(self.index, queries, radius)
            finally:
                self.index.nflip = usual


def search_index(index: Any, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
    """FAISS's search, sorted by distance and then by row. Places that it could not fill come last."""
    if len(queries) == 0:
        return np.empty((0, k), np.int64), np.empty((0, k), np.int32)
    distances, rows = index.search(queries, k)
    rows, distances = np.where(rows < 0, NOTHING, rows), np.where(rows < 0, NOWHERE, distances)
    order = np.lexsort((rows, distances), axis=1)
    rows, distances = (np.take_along_axis(array, order, axis=1) for array in (rows, distances))
    return rows.astype(np.int64, copy=False), distances.astype(np.int32, copy=False)


def _range_search(index: Any, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
    """FAISS's range search with an inclusive radius, sorted."""
    if len(queries) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32)
    limits, distances, rows = index.range_search(queries, min(radius, index.d) + 1)
    limits, distances = limits.astype(np.int64), distances.astype(np.int32)
    query = np.repeat(np.arange(len(queries)), np.diff(limits))
    order = np.lexsort((rows, distances, query))
    return limits, rows[order].astype(np.int64), distances[order]


def _faiss(backend: str) -> Any:
    return require("faiss", "faiss", f"backend {backend!r}")


@contextmanager
def one_thread(faiss: Any) -> Iterator[None]:
    """FAISS builds with one thread inside the block. With several, graphs and clusters depend on which is faster."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _check_settings(backend: Any, *, least: int = 1) -> None:
    """Refuse settings that would fail, never end or exhaust memory at the first search. Files are checked here too."""
    for setting in fields(backend):
        value = getattr(backend, setting.name)
        if value is not None or setting.default is not None:
            whole_number(value, setting.name, least=least, most=MOST[setting.name])
