"""FAISS: codes in memory, and one file that ``faiss.read_index_binary`` reads without this package.

`hashlearn.search.stores.file_store` describes the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k
from hashlearn.search.ids import INTEGER, IdArray, ids_at
from hashlearn.search.index import HammingIndex
from hashlearn.search.interface import SearchResult
from hashlearn.search.stores.base import Batch, Encoder, Where
from hashlearn.search.stores.faiss_files import ENGINE, faiss_index, read_index, write_index
from hashlearn.search.stores.faiss_kinds import Kind, as_kind, search_index
from hashlearn.search.stores.file_store import FileStore


class FaissStore(FileStore):
    """A binary index of FAISS in one file. Open it with `create`; `save` and `close` write it.

    FAISS returns the user's ids if they are integers. Text is in the file too, see `write_faiss`. The codes
    are held in memory. A ``with`` block that ends in an error does not write the file.

    >>> store = FaissStore.create("codes.faiss", 32, kind="hnsw")  # doctest: +SKIP
    """

    packages, extra, engine = ("faiss",), "faiss", ENGINE

    def __init__(self, path: str | os.PathLike[str] | None, n_bits: int, kind: Kind, **declared: Any) -> None:
        super().__init__(path, n_bits, **declared)
        self._package("faiss")
        self.kind, self.index = kind, HammingIndex(self.n_bits)
        self._faiss: tuple[Any, IdArray] | None = None  # FAISS's index and the id of each row, until a code changes

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | None,
        n_bits: int,
        *,
        kind: str | Kind | None = None,
        hasher: Encoder | None = None,
        model: str | None = None,
        id_type: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Self:
        """Open the file, or start empty if there is none. With None as path, nothing is ever written.

        ``kind`` is "flat", "hnsw" or "ivf", or an object such as ``FaissHNSW(search_width=256)``. None takes that of
        the file; a new one is flat. A file that neither this store nor `write_faiss` wrote is refused.
        """
        asked = None if kind is None else as_kind(kind)
        store = cls(path, n_bits, asked or as_kind("flat"), hasher=hasher, model=model, id_type=id_type, fields=fields)
        if path is None or not store._is_there:
            return store
        found = read_index(path)
        store._take(found.about, id_type)
        same = type(asked) is type(found.kind) if isinstance(kind, str) else asked in (None, found.kind)
        if not same:
            raise ValueError(f"{store._described} is there already, as {found.kind} and not {asked}")
        store.kind = found.kind
        store.index.add(found.codes, found.ids)
        store._faiss = found.index, found.ids
        return store

    def _write(self, path: Path) -> str:
        index, ids = self._built()
        return write_index(path, index, ids, self.id_type, self.n_bits, self.kind, self.model)

    def _built(self) -> tuple[Any, IdArray]:
        """FAISS's index of all codes, and the ids of its rows."""
        if self._faiss is None:
            ids = self.index.ids
            self._faiss = faiss_index(self.index.codes, ids, self.kind), ids
        return self._faiss

    def _count(self, where: Where = None) -> int:
        return self.index.count(where)

    def _upsert(self, batch: Batch, replace: bool) -> None:
        put = self.index.upsert if replace else self.index.add
        put(batch.codes, batch.ids)
        self._faiss, self._unsaved = None, True

    def _remove(self, where: Any) -> int:
        count = self.index.remove(where=where)
        if count:
            self._faiss, self._unsaved = None, True
        return count

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        if exact or where is not None or self.kind.exact:
            return self.index.search(codes, k, where=where)
        k = require_k(k, len(self.index))
        index, ids = self._built()
        rows, distances = search_index(index, codes, k)
        return SearchResult(rows if self.id_type == INTEGER else ids_at(ids, rows), distances)
