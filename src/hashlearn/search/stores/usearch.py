"""usearch: an HNSW graph over bits (``b1``, Hamming), in memory, in one file when it is saved.

usearch takes whole bytes, so codes stay padded; the order of bits does not matter to it. Its file has no checksum: load
only files of your own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.inputs import require_k
from hashlearn.search.results import NOTHING, NOWHERE, SearchResult
from hashlearn.search.stores.base import Encoder, Store, require_same_bits
from hashlearn.search.ties import settled
from hashlearn.system.atomic import replacing
from hashlearn.system.packages import require


class UsearchStore(Store):
    """A usearch index. Open it with `create`; it is written by `save` and by `close`.

    >>> store = UsearchStore.create("codes.usearch", 32)  # doctest: +SKIP
    """

    def __init__(self, index: Any, path: Path | None, n_bits: int, hasher: Encoder | None) -> None:
        super().__init__(n_bits, hasher)
        self.index, self.path = index, path

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | None,
        n_bits: int,
        *,
        hasher: Encoder | None = None,
        n_links: int = 16,
        build_width: int = 128,
        search_width: int = 64,
    ) -> Self:
        """Open the file, or begin with nothing where there is none; None: nothing is ever written."""
        usearch = require("usearch.index", "usearch", "a usearch store")
        index = usearch.Index(
            ndim=8 * -(-n_bits // 8),
            metric=usearch.MetricKind.Hamming,
            dtype=usearch.ScalarKind.B1,
            connectivity=n_links,
            expansion_add=build_width,
            expansion_search=search_width,
        )
        store = cls(index, None if path is None else Path(path), n_bits, hasher)
        if store.path is not None and store.path.exists():
            there = usearch.Index.metadata(str(store.path))
            bits = there["dimensions"] if there else "no"
            require_same_bits(f"index {str(path)!r}", bits, 8 * store.n_bytes)
            index.load(str(store.path))
        return store

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        with replacing(self.path) as beside:
            self.index.save(str(beside))

    def __len__(self) -> int:
        return len(self.index)

    def close(self) -> None:
        """Save, where there is a file."""
        self.save()

    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        keys = ids.astype(np.uint64)
        if len(self):
            self._drop(keys)
        # With several threads the graph would depend on which is faster.
        self.index.add(keys, codes, threads=1)

    def _remove(self, ids: NDArray[np.int64]) -> int:
        return self._drop(ids.astype(np.uint64))

    def _drop(self, keys: NDArray[np.uint64]) -> int:
        there = keys[np.asarray(self.index.contains(keys))]
        if len(there):
            self.index.remove(there)
        return len(there)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool) -> SearchResult:
        n = len(self)
        k = require_k(k, n)
        if exact:
            return settled(lambda queries, count: self._ask(codes[queries], count, True), len(codes), n, k)
        if len(codes) == 0:
            return SearchResult(np.empty((0, k), np.int64), np.empty((0, k), np.int32))
        ids, distances = self._ask(codes, k, False)
        order = np.lexsort((ids, distances), axis=1)
        return SearchResult(np.take_along_axis(ids, order, axis=1), np.take_along_axis(distances, order, axis=1))

    def _ask(self, codes: NDArray[np.uint8], count: int, exact: bool) -> tuple[NDArray[Any], NDArray[Any]]:
        # Two queries at least, because the answer to one has another shape.
        padded = np.concatenate([codes, codes]) if len(codes) == 1 else codes
        matches = self.index.search(padded, count, exact=exact)
        keys, distances, found = matches.keys[: len(codes)], matches.distances[: len(codes)], matches.counts
        missing = np.arange(keys.shape[1]) >= np.asarray(found)[: len(codes), None]
        ids = np.where(missing, np.int64(NOTHING), keys.astype(np.int64))
        near = np.where(missing, np.float32(0), distances).astype(np.int64)
        return ids, np.where(missing, NOWHERE, near).astype(np.int32)
