"""FAISS's approximate searches: inverted lists, a neighbour graph, multi-index hashing.

They trade a part of the neighbours for time; `benchmarks/search_engines.py` measures how much. Built with one thread,
so that the same codes give the same answers. A search by radius is exact with each of them: multi-index hashing finds
everything within n_hashes · (flips + 1) − 1 by the pigeonhole principle (Norouzi, Punjani, Fleet 2012), and where an
engine cannot promise that much, all codes are scanned.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from hashlearn.core.checks import whole_number
from hashlearn.search.engines import ByteArray, DistanceArray, Engine, RowArray
from hashlearn.search.faiss_flat import in_order, inclusive_range, load_faiss, one_faiss_thread
from hashlearn.search.inputs import MOST_BITS
from hashlearn.search.results import NOTHING, NOWHERE
from hashlearn.search.scan import Scan

CODES_PER_LIST = 39  # fewer than this, and FAISS calls its clusters badly trained
GROWTH_BEFORE_NEW_LISTS = 4
MOST_FLIPS = 2  # of a search by radius: buckets to look into grow as bits ** flips
# Upper limits of settings. FAISS takes memory for ``search_width`` candidates in every thread and n_links neighbors of
# every code, and looks into about bits ** flips buckets for each query.
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
class FaissIVF:
    """FAISS ``IndexBinaryIVF``: codes in lists around cluster centres, and only the nearest lists are searched.

    ``n_lists`` None: 4 √n, as far as every list has enough codes; ``n_probes`` None: a sixteenth of the lists.
    """

    n_lists: int | None = None
    n_probes: int | None = None
    name: ClassVar[str] = "faiss_ivf"
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_settings(self)

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""
        faiss = load_faiss(self.name)
        n_lists = self.n_lists or max(1, min(round(4 * len(codes) ** 0.5), len(codes) // CODES_PER_LIST))
        n_lists = min(n_lists, len(codes))
        centres = faiss.IndexBinaryFlat(8 * codes.shape[1])
        index = faiss.IndexBinaryIVF(centres, 8 * codes.shape[1], n_lists)
        index.cp.min_points_per_centroid = 1  # else it warns on stderr
        index.nprobe = min(n_lists, self.n_probes or max(1, n_lists // 16))
        with one_faiss_thread(faiss):
            index.train(codes)
            index.add(codes)
        most = GROWTH_BEFORE_NEW_LISTS * len(codes)
        return _ApproximateEngine(faiss, index, codes, n_bits, most, centres)


@dataclass(frozen=True)
class FaissHNSW:
    """FAISS ``IndexBinaryHNSW``: a graph of ``n_links`` neighbours, walked towards the query (Malkov, Yashunin 2018).

    The larger ``search_width``, the more neighbours are found and the longer it takes; at least k is used.
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
        faiss = load_faiss(self.name)
        index = faiss.IndexBinaryHNSW(8 * codes.shape[1], self.n_links)
        index.hnsw.efConstruction, index.hnsw.efSearch = self.build_width, self.search_width
        with one_faiss_thread(faiss):
            index.add(codes)
        return _ApproximateEngine(faiss, index, codes, n_bits, None)


@dataclass(frozen=True)
class FaissMultiHash:
    """FAISS ``IndexBinaryMultiHash``: one table for each of ``n_hashes`` pieces of the code.

    A code is a candidate when one of its pieces differs from the query's in at most ``flips`` bits, so a query may find
    fewer than k. ``n_hashes`` None: pieces of about log₂ n bits.
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
        faiss = load_faiss(self.name)
        width = 8 * codes.shape[1]
        n_hashes = self.n_hashes or max(1, round(n_bits / max(4.0, np.log2(len(codes)))))
        n_hashes = min(max(n_hashes, -(-width // 62)), width)  # a piece is one number of 64 bits
        index = faiss.IndexBinaryMultiHash(width, n_hashes, width // n_hashes)
        index.nflip = min(self.flips, index.b)  # no piece has more bits to flip
        index.add(codes)
        return _MultiHashEngine(faiss, index, codes, n_bits, GROWTH_BEFORE_NEW_LISTS * len(codes))


class _ApproximateEngine:
    """``most``: the size at which building anew is better than going on; ``owned`` are parts that FAISS points to."""

    def __init__(
        self, faiss: Any, index: Any, codes: ByteArray, n_bits: int, most: int | None, owned: Any = None
    ) -> None:
        self.faiss, self.index, self.n_bits, self.most, self.owned = faiss, index, n_bits, most, owned
        self._codes: list[ByteArray] = [codes]
        self._scan: Scan | None = None

    def extend(self, codes: ByteArray) -> bool:
        if self.most is not None and self.index.ntotal + len(codes) > self.most:
            return False
        with one_faiss_thread(self.faiss):
            self.index.add(codes)
        self._codes.append(codes)
        self._scan = None
        return True

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        if len(queries) == 0:
            return np.empty((0, k), np.int64), np.empty((0, k), np.int32)
        distances, rows = self.index.search(queries, k)
        missing = rows < 0
        rows[missing], distances[missing] = NOTHING, NOWHERE
        return in_order(rows, distances)

    def within(self, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
        if self._scan is None:
            self._scan = Scan(np.concatenate(self._codes), self.n_bits)
        return self._scan.within(queries, radius)


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
                return inclusive_range(self.index, queries, radius)
            finally:
                self.index.nflip = usual


def _check_settings(backend: Any, *, least: int = 1) -> None:
    """Refuse settings that would fail, never end or take all memory at the first search; files come here too."""
    for setting in fields(backend):
        value, most = getattr(backend, setting.name), MOST[setting.name]
        if value is None and setting.default is None:
            continue
        whole_number(value, setting.name, least=least)
        if value > most:
            raise ValueError(f"{setting.name} must be at most {most:,}, got {value!r}")
