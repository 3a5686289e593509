"""The kinds of binary indexes that FAISS has: an exact scan, inverted lists, and a neighbor graph.

FAISS takes whole bytes; our codes are padded with zero bits already. Approximate kinds are built with one thread, so
the same codes give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from hashlearn.core.checks import whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.packages import require
from hashlearn.search.ids import NOTHING
from hashlearn.search.interface import NOWHERE, ByteArray, DistanceArray, RowArray

CODES_PER_LIST = 39  # with fewer, FAISS warns that its clusters are badly trained
# Upper limits of settings. FAISS allocates ``search_width`` candidates in every thread and ``n_links`` neighbors for
# every code.
MOST = {"n_lists": 2**20, "n_probes": 2**20, "n_links": 512, "build_width": 2**14, "search_width": 2**18}


@dataclass(frozen=True)
class FaissFlat:
    """FAISS ``IndexBinaryFlat``: exact."""

    exact: ClassVar[bool] = True

    def empty(self, codes: ByteArray) -> Any:
        """An index of FAISS for codes of this width."""
        return faiss_package().IndexBinaryFlat(8 * codes.shape[1])


@dataclass(frozen=True)
class FaissIVF:
    """FAISS ``IndexBinaryIVF``: codes in lists around cluster centers. Only the nearest lists are searched.

    ``n_lists`` None: 4 √n, or fewer so that every list has enough codes. ``n_probes`` None: a sixteenth of the lists.
    """

    n_lists: int | None = None
    n_probes: int | None = None
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_settings(self, least=1)

    def empty(self, codes: ByteArray) -> Any:
        """An index of FAISS without codes, with lists for such codes as these."""
        faiss = faiss_package()
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
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_settings(self, least=2)

    def empty(self, codes: ByteArray) -> Any:
        """An index of FAISS without codes, for codes of this width."""
        index = faiss_package().IndexBinaryHNSW(8 * codes.shape[1], self.n_links)
        index.hnsw.efConstruction, index.hnsw.efSearch = self.build_width, self.search_width
        return index


Kind: TypeAlias = FaissFlat | FaissHNSW | FaissIVF
KINDS: dict[str, type[Any]] = {"flat": FaissFlat, "hnsw": FaissHNSW, "ivf": FaissIVF}


def as_kind(kind: Any) -> Kind:
    """The settings of an index, from a name or unchanged."""
    if isinstance(kind, FaissFlat | FaissHNSW | FaissIVF):
        return kind
    require_choice(kind, "kind", KINDS)
    settings: Kind = KINDS[kind]()
    return settings


def search_index(index: Any, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
    """FAISS's search, sorted by distance and then by row. Places that it could not fill come last."""
    if len(queries) == 0:
        return np.empty((0, k), np.int64), np.empty((0, k), np.int32)
    distances, rows = index.search(queries, k)
    rows, distances = np.where(rows < 0, NOTHING, rows), np.where(rows < 0, NOWHERE, distances)
    order = np.lexsort((rows, distances), axis=1)
    rows, distances = (np.take_along_axis(array, order, axis=1) for array in (rows, distances))
    return rows.astype(np.int64, copy=False), distances.astype(np.int32, copy=False)


def faiss_package() -> Any:
    """FAISS, or an error that says how to install it."""
    return require("faiss", "faiss", "a file of FAISS")


@contextmanager
def one_thread(faiss: Any) -> Iterator[None]:
    """FAISS builds with one thread inside the block. With several, graphs and clusters depend on which is faster."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _check_settings(kind: Any, *, least: int) -> None:
    """Refuse settings that would fail, never end or exhaust memory at the first search. Files are checked here too."""
    for setting in fields(kind):
        value = getattr(kind, setting.name)
        if value is not None or setting.default is not None:
            whole_number(value, setting.name, least=least, most=MOST[setting.name])
