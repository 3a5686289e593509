"""usearch: an HNSW graph over bits (``b1``, Hamming) in memory, saved to one file.

usearch takes whole bytes, so codes stay padded; the order of bits does not matter. Its keys are integers: ids that are
text get numbers. `hashlearn.search.stores.file_store` describes the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k
from hashlearn.search.about import About
from hashlearn.search.candidates import ranked
from hashlearn.search.ids import INTEGER, NOTHING, IdArray, as_objects, checked_ids, no_ids
from hashlearn.search.interface import NOWHERE, SearchResult
from hashlearn.search.stores.base import Batch, Where
from hashlearn.search.stores.file_store import FileStore, joined, read_file, write_file


class UsearchStore(FileStore):
    """A usearch index in one file. `save` and `close` write it; with None as place, nothing is ever written.

    The options are ``n_links``, ``build_width`` and ``search_width`` of the graph. A file that this store did not write
    is refused.

    It keeps ids and codes only, so ``where`` takes ids. A ``with`` block that ends in an error does not write the file.

    >>> store = UsearchStore.open("codes.usearch", About(32))  # doctest: +SKIP
    """

    packages, extra, engine = ("usearch.index",), "usearch", "usearch"

    def __init__(
        self,
        place: str | os.PathLike[str] | None,
        *,
        n_links: int = 16,
        build_width: int = 128,
        search_width: int = 64,
    ) -> None:
        super().__init__(place)
        self._settings = {"connectivity": n_links, "expansion_add": build_width, "expansion_search": search_width}
        self._whole = True
        self._keys: dict[Any, int] = {}  # usearch's key of each id that is text
        self._names: list[Any] = []  # the id of each key, or None

    def _open(self, asked: About | None) -> None:
        if self.path is None or not self._is_there:
            self._adopt(None, asked)
            self.index = self._empty_index()
            return
        header, names = read_file(self.path, self.engine, lambda header, _, names: (header, names))
        self._take_header(header, asked)
        self.index = self._empty_index()
        self.index.load(os.fspath(self.path))
        self._take_names(names)

    def _empty_index(self) -> Any:
        usearch = self._package("usearch.index")
        kinds = {"metric": usearch.MetricKind.Hamming, "dtype": usearch.ScalarKind.B1}
        return usearch.Index(ndim=8 * self.n_bytes, **kinds, **self._settings)

    def save(self) -> None:
        """Write the file atomically. Refused if another store has written it since this one read it."""
        with self._lock:
            if not self._whole:
                raise RuntimeError(f"an upsert into {self._described} failed half-way; open it again, nothing is saved")
            super().save()

    def _write(self, path: Path) -> str:
        def write_index(place: str) -> None:
            try:
                self.index.save(place)
            except RuntimeError as error:  # a full disk, in words that do not say so
                raise OSError(f"{self._described} could not be written, nothing is saved: {error}") from None

        return write_file(path, self.engine, write_index, about=self.about, settings={}, ids=self._names)

    def _take_names(self, names: list[Any]) -> None:
        """Take the ids of a file, each of which must have a code."""
        if self.id_type == INTEGER:
            return
        keys = [key for key, name in enumerate(names) if name is not None]
        ids = checked_ids([names[key] for key in keys], len(keys), self.id_type).tolist()
        if len(ids) != len(self.index) or not np.all(self.index.contains(np.array(keys, np.uint64))):
            raise ValueError(f"{self._described} is damaged: it has {len(self.index)} codes and other ids")
        self._keys, self._names = dict(zip(ids, keys, strict=True)), [None] * len(names)
        for item, key in self._keys.items():
            self._names[key] = item

    def _count(self, where: Where = None) -> int:
        return len(self._there(where)[0]) if isinstance(where, np.ndarray) else len(self.index)

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        batch = joined(batches)
        if batch is None:
            return
        known, old = self._there(batch.ids)
        if len(known) and not replace:
            self._refuse_known(known[0], len(known))
        if self.id_type == INTEGER:
            keys = batch.ids.astype(np.uint64)
        else:
            new = [item for item in batch.ids.tolist() if item not in self._keys]
            numbers = dict(zip(new, range(len(self._names), len(self._names) + len(new)), strict=True))
            keys = np.array([self._keys.get(item, numbers.get(item)) for item in batch.ids.tolist()], np.uint64)
        self._whole = False  # until all rows are in
        if len(old):
            self.index.remove(old)
        # With several threads the graph would depend on which is faster.
        self.index.add(keys, batch.codes, threads=1)
        if self.id_type != INTEGER:
            self._keys.update(numbers)
            self._names += new
        self._whole = self._unsaved = True

    def _remove(self, where: Any) -> int:
        there, keys = self._there(where)
        if len(keys):
            self.index.remove(keys)
            for item in there.tolist() if self.id_type != INTEGER else ():
                self._names[self._keys.pop(item)] = None
            self._unsaved = True
        return len(keys)

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        """Among given ids, all codes are compared."""
        if not isinstance(where, np.ndarray):
            return super()._search(codes, k, exact, where)
        require_k(k, len(self.index))
        ids, keys = self._there(where)
        stored = np.array(self.index.get(keys) if len(keys) else [], np.uint8).reshape(len(keys), self.n_bytes)
        return ranked(codes, stored, ids, self.n_bits, k, self.id_type)

    def _ask(
        self, codes: NDArray[np.uint8], count: int, exact: bool, where: Where
    ) -> tuple[IdArray, NDArray[np.int32]]:
        # At least two queries, because the answer to a single one has another shape.
        padded = np.concatenate([codes, codes]) if len(codes) == 1 else codes
        matches = self.index.search(padded, count, exact=exact)
        keys, distances, found = matches.keys[: len(codes)], matches.distances[: len(codes)], matches.counts
        missing = np.arange(keys.shape[1]) >= np.asarray(found)[: len(codes), None]
        near = np.where(missing, np.float32(0), distances).astype(np.int64)
        return self._ids_of(keys, missing), np.where(missing, NOWHERE, near).astype(np.int32)

    def _ids_of(self, keys: NDArray[np.uint64], missing: NDArray[np.bool_]) -> IdArray:
        if self.id_type == INTEGER:
            self._required_id(int(np.where(missing, keys.dtype.type(0), keys).max(initial=0)))
            return np.where(missing, np.int64(NOTHING), keys.astype(np.int64))
        ids = no_ids(keys.shape, self.id_type)
        ids[~missing] = as_objects(map(self._names.__getitem__, keys[~missing].tolist()))
        return ids

    def _there(self, ids: IdArray) -> tuple[IdArray, NDArray[np.uint64]]:
        """Those of the ids that are stored, and their keys."""
        if self.id_type == INTEGER:
            keys = ids.astype(np.uint64)
            there = np.asarray(self.index.contains(keys) if len(keys) else [], bool)
            return ids[there], keys[there]
        known = [item for item in ids.tolist() if item in self._keys]
        return as_objects(known), np.array([self._keys[item] for item in known], np.uint64)
