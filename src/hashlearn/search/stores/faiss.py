"""FAISS: codes in memory, and one file that ``faiss.read_index_binary`` reads without this package.

`hashlearn.search.stores.faiss_files` describes the file. Every save writes a random mark into it. A store overwrites a
file only if its mark is the one that the store has read.
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
from hashlearn.search.stores.base import Batch, Encoder, Store, Where
from hashlearn.search.stores.faiss_files import faiss_index, read_about, read_index, write_index
from hashlearn.search.stores.faiss_kinds import Kind, as_kind, search_index


class FaissStore(Store):
    """A binary index of FAISS in one file. Open it with `create`; `save` and `close` write it.

    FAISS returns the user's ids if they are integers. Text and UUIDs are in the file too, see `write_faiss`. The codes
    are held in memory. A ``with`` block that ends in an error does not write the file.

    >>> store = FaissStore.create("codes.faiss", 32, kind="hnsw")  # doctest: +SKIP
    """

    packages, extra, has_fields = ("faiss",), "faiss", False

    def __init__(
        self,
        path: Path | None,
        n_bits: int,
        kind: Kind,
        hasher: Encoder | None,
        model: str | None,
        id_type: str | None,
        fields: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(n_bits, hasher, model, id_type, fields)
        self._package("faiss")
        self.path, self.kind = path, kind
        self.index = HammingIndex(self.n_bits)
        self._described = "the index" if path is None else f"index {str(path)!r}"
        self._faiss: tuple[Any, IdArray] | None = None  # FAISS's index and the id of each row, until a code changes
        self._mark: str | None = None  # that of the file when it was last read or written; None: there was no file
        self._unsaved = True

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
        place = None if path is None else Path(path)
        store = cls(place, n_bits, asked or as_kind("flat"), hasher, model, id_type, fields)
        if place is None or not os.path.lexists(place):
            return store
        found = read_index(place)
        about = found.about
        store._require_bits(about.n_bits)
        store._take_ids(about.id_type, id_type)
        store._require_model(about.model)
        same = type(asked) is type(about.kind) if isinstance(kind, str) else asked in (None, about.kind)
        if not same:
            raise ValueError(f"{store._described} is there already, as {about.kind} and not {asked}")
        store.kind = about.kind
        store.index.add(found.codes, found.ids)
        store._faiss, store._mark, store._unsaved = (found.index, found.ids), about.mark, False
        return store

    def save(self) -> None:
        """Write the file atomically. Refused if another store has written it since this one read it."""
        with self._lock:
            if self.path is None or not self._unsaved:
                return
            index, ids = self._built()
            if os.path.lexists(self.path) and read_about(self.path).mark != self._mark:
                raise ValueError(
                    f"{self._described} was written by another store after this one read it; nothing is saved. "
                    "Open it again and repeat the changes"
                )
            self._mark = write_index(self.path, index, ids, self.id_type, self.n_bits, self.kind, self.model)
            self._unsaved = False

    def _built(self) -> tuple[Any, IdArray]:
        """FAISS's index of all codes, and the ids of its rows."""
        if self._faiss is None:
            ids = self.index.ids
            self._faiss = faiss_index(self.index.codes, ids, self.kind), ids
        return self._faiss

    def _count(self, where: Where = None) -> int:
        return self.index.count(where)

    def _close(self) -> None:
        self.save()

    def _close_after_error(self) -> None:
        """The file stays as it was."""

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
