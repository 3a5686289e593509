"""usearch: an HNSW graph over bits (``b1``, Hamming), saved to one file that usearch reads without this package.

`hashlearn.search.stores.file_store` describes the file. usearch takes whole bytes, so codes stay padded.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import INTEGER, NOTHING, IdArray, no_ids, rows_in_any_order, rows_of
from hashlearn.search.stores.file_store import FileStore

CODES_AT_ONCE = 65_536  # usearch returns an array for each code


class UsearchStore(FileStore):
    """A graph of usearch in one file. Its settings are ``n_links``, ``build_width`` and ``search_width``.

    >>> store = UsearchStore.open("codes.usearch", About(32))  # doctest: +SKIP
    """

    packages, extra = ("usearch.index",), "usearch"
    signature = (-38, b"\nhashlearn codes in usearch, format 1\n")
    kinds: ClassVar = {"hnsw": {"n_links": 16, "build_width": 128, "search_width": 64}}

    def _updated(self, index: Any, changes: list[IdArray]) -> Any:
        stored, codes = self.index.ids, self.index.codes
        ids = stored if index is None else np.unique(np.concatenate(changes))
        if index is None:
            usearch = self._package("usearch.index")
            kinds = {"metric": usearch.MetricKind.Hamming, "dtype": usearch.ScalarKind.B1}
            index = usearch.Index(ndim=8 * self.n_bytes, connectivity=self.settings["n_links"], **kinds)
            self._names = no_ids((0,), self.id_type)
        index.expansion_add = self.settings["build_width"]
        rows = rows_of(ids, stored)
        there = rows >= 0
        keys = ids if self.id_type == INTEGER else self._keys_of(ids, there)
        index.remove(keys)
        # With several threads the graph would depend on which is faster.
        index.add(keys[there], codes[rows[there]], threads=1)
        return index

    def _keys_of(self, ids: IdArray, there: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The keys of ids that are text, and new keys for new ones. Those that are no longer ``there`` lose theirs."""
        keys = rows_in_any_order(ids, self._names)
        new = keys < 0
        keys[new] = len(self._names) + np.arange(new.sum())
        self._names = np.concatenate([self._names, ids[new]])
        self._names[keys[~there]] = None
        return keys

    def _nearest(self, index: Any, codes: NDArray[np.uint8], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        index.expansion_search = self.settings["search_width"]
        # At least two queries, because the answer to a single one has another shape.
        matches = index.search(np.concatenate([codes, codes[:1]]), k)
        missing = np.arange(k) >= matches.counts[:-1, None]
        keys = np.where(missing, NOTHING, matches.keys[:-1].astype(np.int64))
        return keys, np.where(missing, 0, matches.distances[:-1])

    def _write(self, index: Any, place: str) -> None:
        index.save(place)

    def _load(self, place: str, n_bytes: int) -> tuple[Any, IdArray, NDArray[np.uint8]]:
        usearch = self._package("usearch.index")
        index = usearch.Index.restore(place)
        codes_are = (8 * n_bytes, usearch.ScalarKind.B1, usearch.MetricKind.Hamming)
        if index is None or (index.ndim, index.dtype, index.metric_kind) != codes_are:
            raise ValueError(f"its index is not one of codes of {n_bytes} byte(s)")
        keys = np.asarray(index.keys)
        codes = [np.zeros((0, n_bytes), np.uint8)]
        for first in range(0, len(keys), CODES_AT_ONCE):
            codes.append(np.array(index.get(keys[first : first + CODES_AT_ONCE])))
        return index, keys, np.concatenate(codes)
