"""FAISS: codes in memory, and one file that ``faiss.read_index_binary`` reads without this package.

`hashlearn.search.stores.file_store` describes the file. The index in it is an ``IndexBinaryIDMap2`` around an
``IndexBinaryFlat``, ``IndexBinaryHNSW`` or ``IndexBinaryIVF``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k
from hashlearn.core.names import require_choice
from hashlearn.search.about import About
from hashlearn.search.ids import INTEGER, IdArray, checked_ids, ids_at
from hashlearn.search.index import HammingIndex
from hashlearn.search.interface import SearchResult, checked_codes
from hashlearn.search.stores.base import Batch, Where
from hashlearn.search.stores.faiss_kinds import (
    KINDS,
    FaissFlat,
    Kind,
    as_kind,
    faiss_package,
    one_thread,
    search_index,
)
from hashlearn.search.stores.file_store import BLOCK, FileStore, Header, joined, read_file, write_file


class FaissStore(FileStore):
    """A binary index of FAISS in one file. `save` and `close` write it; with None as place, nothing is ever written.

    The option ``kind`` is "flat", "hnsw" or "ivf", or an object such as ``FaissHNSW(search_width=256)``. None takes
    that of the file; a new one is flat. A file that this store did not write is refused.

    If ids are integers, FAISS answers with them. Otherwise it answers with rows, and ``ids.json`` in the file, which is
    also a zip archive, lists the id of each row. ``index`` holds all codes in memory. A ``with`` block that ends in an
    error does not write the file.

    >>> store = FaissStore.open("codes.faiss", About(32), kind="hnsw")  # doctest: +SKIP
    """

    packages, extra, engine = ("faiss",), "faiss", "FAISS"

    def __init__(self, place: str | os.PathLike[str] | None, *, kind: str | Kind | None = None) -> None:
        super().__init__(place)
        self._asked_kind = None if kind is None else as_kind(kind)
        self._is_named = isinstance(kind, str)
        self.kind = self._asked_kind or as_kind("flat")
        self._faiss: tuple[Any, IdArray] | None = None  # FAISS's index and the id of each row, until a code changes

    def _open(self, asked: About | None) -> None:
        if self.path is None or not self._is_there:
            self._adopt(None, asked)
            self.index = HammingIndex(self.n_bits)
            return
        header, self.kind, index, codes, ids = read_file(self.path, self.engine, _read)
        self._take_header(header, asked)
        wanted = self._asked_kind
        same = type(wanted) is type(self.kind) if self._is_named else wanted in (None, self.kind)
        if not same:
            raise ValueError(f"{self._described} is there already, as {self.kind} and not {wanted}")
        self.index = HammingIndex(self.n_bits)
        self.index.add(codes, ids)
        self._faiss = index, ids

    def _write(self, path: Path) -> str:
        index, ids = self._built()
        name = next(name for name, kind in KINDS.items() if isinstance(self.kind, kind))
        return write_file(
            path,
            self.engine,
            lambda place: faiss_package().write_index_binary(index, place),
            about=self.about,
            settings={"kind": name, **asdict(self.kind)},
            ids=ids.tolist(),
        )

    def _built(self) -> tuple[Any, IdArray]:
        """FAISS's index of all codes, and the ids of its rows."""
        if self._faiss is None:
            ids = self.index.ids
            self._faiss = _faiss_index(self.index.codes, ids, self.kind), ids
        return self._faiss

    def _count(self, where: Where = None) -> int:
        return self.index.count(where)

    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        batch = joined(batches)
        if batch is None:
            return
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


def _faiss_index(codes: NDArray[np.uint8], ids: IdArray, kind: Kind) -> Any:
    """An ``IndexBinaryIDMap2`` with these codes. Without codes it is flat, because lists need codes to be trained."""
    faiss = faiss_package()
    index = faiss.IndexBinaryIDMap2((kind if len(codes) else FaissFlat()).empty(codes))
    with one_thread(faiss):
        index.add_with_ids(codes, ids if ids.dtype.kind == "i" else np.arange(len(ids)))
    return index


def _read(header: Header, file: BinaryIO, names: list[Any]) -> tuple[Header, Kind, Any, NDArray[np.uint8], IdArray]:
    """Codes and ids out of an index, if they are what the file says."""
    faiss, settings, about = faiss_package(), dict(header.settings), header.about
    require_choice(name := settings.pop("kind", None), "kind", KINDS)
    kind = KINDS[name](**settings)
    index = faiss.read_index_binary(faiss.PyCallbackIOReader(file.read, BLOCK))
    width = about.n_bytes
    if not isinstance(index, faiss.IndexBinaryIDMap2) or index.d != 8 * width:
        raise ValueError(f"its index is not one of codes of {about.n_bits} bits under ids")
    inner, n = faiss.downcast_IndexBinary(index.index), index.ntotal
    if isinstance(inner, faiss.IndexBinaryHNSW):
        inner = faiss.downcast_IndexBinary(inner.storage)
    if isinstance(inner, faiss.IndexBinaryFlat):
        codes = faiss.vector_to_array(inner.xb).reshape(-1, width)
    else:
        codes = _listed(faiss, inner.invlists, n, width)
    numbers = faiss.vector_to_array(index.id_map)
    if about.id_type == INTEGER:
        ids = checked_ids(numbers, n)
    else:
        if not np.array_equal(numbers, np.arange(n)):
            raise ValueError("the ids of its index must be the places in ids.json")
        ids = checked_ids(names, n, about.id_type)
    return header, kind, index, checked_codes(codes, about.n_bits), ids


def _listed(faiss: Any, lists: Any, n: int, width: int) -> NDArray[np.uint8]:
    """The codes of inverted lists, by row. In FAISS 1.10 to 1.12, ``reconstruct_n`` returns other bytes."""
    codes = np.zeros((n, width), np.uint8)
    for number in range(lists.nlist):
        size = lists.list_size(number)
        if size:
            rows = faiss.rev_swig_ptr(lists.get_ids(number), size)
            codes[rows] = faiss.rev_swig_ptr(lists.get_codes(number), size * width).reshape(size, width)
    return codes
