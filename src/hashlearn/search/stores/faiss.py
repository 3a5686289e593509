"""FAISS: codes in memory, and one file that ``faiss.read_index_binary`` reads without this package.

`hashlearn.search.stores.file_store` describes the file. The index in it is an ``IndexBinaryIDMap2`` around an
``IndexBinaryFlat`` (exact), an ``IndexBinaryHNSW`` (a graph of neighbors, Malkov and Yashunin 2018) or an
``IndexBinaryIVF`` (lists around cluster centers, of which the nearest are searched). FAISS takes whole bytes; our codes
are padded with zero bits already.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import INTEGER, IdArray
from hashlearn.search.stores.file_store import FileStore

CODES_PER_LIST = 39  # with fewer, FAISS warns that its clusters are badly trained


class FaissStore(FileStore):
    """A binary index of FAISS in one file.

    If ids are integers, FAISS answers with them, else with places in the file's list of ids.

    ``kind`` is "flat", "hnsw" with the settings ``n_links``, ``build_width`` and ``search_width``, or "ivf" with
    ``n_lists`` (default: 4 √n, or fewer so that every list has enough codes) and ``n_probes`` (default: a sixteenth of
    the lists).

    >>> store = FaissStore.open("codes.faiss", About(32), kind="hnsw", search_width=256)  # doctest: +SKIP
    """

    packages, extra = ("faiss",), "faiss"
    signature = (-36, b"\nhashlearn codes in FAISS, format 1\n")
    kinds: ClassVar = {
        "flat": {},
        "hnsw": {"n_links": 32, "build_width": 80, "search_width": 128},
        "ivf": {"n_lists": None, "n_probes": None},
    }

    def _updated(self, _: Any, __: list[IdArray]) -> Any:
        """Built again, since graphs of FAISS cannot remove codes, and lists suit the codes that they were made for.

        One thread builds: with several, graphs and clusters depend on which is faster.
        """
        faiss, codes, self._names = self._package("faiss"), self.index.codes, self.index.ids
        n_threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)
        try:
            index = faiss.IndexBinaryIDMap2(self._empty(faiss, codes))
            index.add_with_ids(codes, self._names if self.id_type == INTEGER else np.arange(len(codes)))
        finally:
            faiss.omp_set_num_threads(n_threads)
        return index

    def _empty(self, faiss: Any, codes: NDArray[np.uint8]) -> Any:
        """An index without codes for such codes as these. Without any it is flat, because lists must be trained."""
        n_bits, settings = 8 * self.n_bytes, self.settings
        if settings["kind"] == "flat" or len(codes) == 0:
            return faiss.IndexBinaryFlat(n_bits)
        if settings["kind"] == "hnsw":
            index = faiss.IndexBinaryHNSW(n_bits, settings["n_links"])
            index.hnsw.efConstruction = settings["build_width"]
        else:
            n_lists = settings["n_lists"] or max(1, min(round(4 * len(codes) ** 0.5), len(codes) // CODES_PER_LIST))
            index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(n_bits), n_bits, min(n_lists, len(codes)))
            index.cp.min_points_per_centroid = 1  # else it warns on stderr
            index.train(codes)
        self._set_width(index)
        return index

    def _set_width(self, inner: Any) -> None:
        """Say how much of the index a search looks at."""
        if self.settings["kind"] == "hnsw":
            inner.hnsw.efSearch = self.settings["search_width"]
        else:
            inner.nprobe = min(inner.nlist, self.settings["n_probes"] or max(1, inner.nlist // 16))

    def _nearest(self, index: Any, codes: NDArray[np.uint8], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        self._set_width(self._package("faiss").downcast_IndexBinary(index.index))
        distances, keys = index.search(codes, k)
        return keys, distances

    def _write(self, index: Any, place: str) -> None:
        self._package("faiss").write_index_binary(index, place)

    def _load(self, place: str, n_bytes: int) -> tuple[Any, IdArray, NDArray[np.uint8]]:
        faiss = self._package("faiss")
        index = faiss.read_index_binary(place)
        if not isinstance(index, faiss.IndexBinaryIDMap2) or index.d != 8 * n_bytes:
            raise ValueError(f"its index is not one of codes of {n_bytes} byte(s) under ids")
        inner = faiss.downcast_IndexBinary(index.index)
        if isinstance(inner, faiss.IndexBinaryHNSW):
            inner = faiss.downcast_IndexBinary(inner.storage)
        if isinstance(inner, faiss.IndexBinaryFlat):
            codes = faiss.vector_to_array(inner.xb).reshape(-1, n_bytes)
        else:
            codes = _listed(faiss, inner.invlists, index.ntotal, n_bytes)
        return index, faiss.vector_to_array(index.id_map), codes


def _listed(faiss: Any, lists: Any, n: int, n_bytes: int) -> NDArray[np.uint8]:
    """The codes of inverted lists, by row. In FAISS 1.10 to 1.12, ``reconstruct_n`` returns other bytes."""
    codes = np.zeros((n, n_bytes), np.uint8)
    for number in range(lists.nlist):
        size = lists.list_size(number)
        if size:
            rows = faiss.rev_swig_ptr(lists.get_ids(number), size)
            codes[rows] = faiss.rev_swig_ptr(lists.get_codes(number), size * n_bytes).reshape(size, n_bytes)
    return codes
