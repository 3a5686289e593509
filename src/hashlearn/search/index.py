"""`HammingIndex`: packed codes in, neighbors out, by an exact scan of all codes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Set
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import finite_float64, require_k, require_radius, whole_number
from hashlearn.core.container import Kind, plain, read_container, write_container
from hashlearn.search.about import checked_model, require_same_model
from hashlearn.search.asymmetric import asymmetric_search
from hashlearn.search.candidates import ranked
from hashlearn.search.ids import (
    INTEGER,
    LARGEST_ID,
    TEXT,
    IdArray,
    checked_id_type,
    checked_ids,
    empty_ids,
    no_ids,
    order_of,
    rows_of,
    shown,
    type_of,
)
from hashlearn.search.interface import RadiusResult, ScoredResult, SearchResult, checked_codes, require_n_bits
from hashlearn.search.scan import Scan

FILE = Kind("index", "hashlearn index", 1)


class HammingIndex:
    """Search packed codes by Hamming distance, or by the margins of the query.

    Parameters
    ----------
    n_bits : length of a code; codes have ⌈n_bits / 8⌉ bytes, big-endian, pad bits zero, as ``encode`` returns them
    model : digest of the hasher that makes the codes, from `hashlearn.persistence.fingerprint`; `save` stores it

    Every search is exact, and ties are broken by id. The first search after a change copies all codes once. For
    approximate searches, see `hashlearn.search.stores.FaissStore`.

    Ids are integers from 0 to 2⁶³ − 1, or text. An index has one kind of ids, that of the first ids added.

    ``where`` says which codes a call may see: a boolean mask in the order of `ids`, or a collection of ids, of which
    those that are not in the index match nothing. With ``where``, a search compares the selected codes only.

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn.search import HammingIndex
    >>> index = HammingIndex(n_bits=12)
    >>> index.add(np.array([[0b00000000, 0], [0b11000000, 0], [0b10000000, 0]], np.uint8))
    array([0, 1, 2])
    >>> found = index.search(np.array([[0b01000000, 0]], np.uint8), k=2)
    >>> found.indices, found.distances
    (array([[0, 1]]), array([[1, 1]], dtype=int32))
    >>> index.search_radius(np.array([[0, 0]], np.uint8), radius=1)[0].indices
    array([0, 2])
    >>> index.search(np.array([[0b01000000, 0]], np.uint8), k=2, where=[1, 2]).indices
    array([[1, 2]])
    """

    def __init__(self, n_bits: int, model: str | None = None) -> None:
        self.n_bits = require_n_bits(n_bits)
        self.model = checked_model(model)
        self.id_type: str | None = None  # "int64" or "string", that of the first ids
        self._next_id = 0  # larger than every integer that was ever an id
        # Ids, ascending, and codes, in parts that are joined when they are read. No array is changed in place, since a
        # search in another thread may still read it.
        self._ids: list[IdArray] = []
        self._codes: list[NDArray[np.uint8]] = []
        self._scan: Scan | None = None  # of all codes; None after a change
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return sum(map(len, self._ids))

    def __repr__(self) -> str:
        return f"HammingIndex(n_bits={self.n_bits}): {len(self)} code(s)"

    @property
    def ids(self) -> IdArray:
        """All ids, ascending: int64, or objects that are text."""
        with self._lock:
            return self._rows()[0].copy()

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of `ids`."""
        with self._lock:
            return self._rows()[1].copy()

    def add(self, codes: Any, ids: Any = None) -> IdArray:
        """Add codes under new ids (None: the next free integers, from 0) and return the ids. All are added, or none."""
        codes = checked_codes(codes, self.n_bits)
        with self._lock:
            ids = self._next_ids(len(codes)) if ids is None else checked_ids(ids, len(codes), self.id_type)
            self._put(codes, ids, replace=False)
            return ids

    def upsert(self, codes: Any, ids: Any) -> None:
        """Store each code under its id, in place of the code that is there. All are stored, or none."""
        codes = checked_codes(codes, self.n_bits)
        with self._lock:
            self._put(codes, checked_ids(ids, len(codes), self.id_type), replace=True)

    def remove(self, ids: Any = None, *, where: Any = None) -> int:
        """Remove codes by id, or those of ``where``, and return how many.

        If one of ``ids`` is missing, raise KeyError and remove nothing.
        """
        if (ids is None) == (where is None):
            raise ValueError(f"remove takes either ids or where, got {'neither' if ids is None else 'both'}")
        with self._lock:
            stored, codes = self._rows()
            if ids is None:
                rows = _selected(where, stored, self.id_type)
            else:
                ids = checked_ids(ids, id_type=self.id_type)
                rows = rows_of(ids, stored)
                if (missing := ids[rows < 0]).size:
                    raise KeyError(
                        f"ids must be in the index, but {shown(missing[0])} is not ({len(missing)} such id(s))"
                    )
            self._ids, self._codes, self._scan = [np.delete(stored, rows)], [np.delete(codes, rows, axis=0)], None
            return len(rows)

    def count(self, where: Any = None) -> int:
        """How many codes there are, or how many of them ``where`` selects."""
        with self._lock:
            return len(self) if where is None else len(_selected(where, self._rows()[0], self.id_type))

    @overload
    def search(self, codes: Any, k: int, *, where: Any = None) -> SearchResult: ...

    @overload
    def search(self, codes: None = None, *, k: int, margins: Any, where: Any = None) -> ScoredResult: ...

    def search(self, codes: Any = None, k: Any = None, *, margins: Any = None, where: Any = None) -> SearchResult:
        """The k nearest of each code, nearest first, ties by id; k from 1 to ``len(index)``.

        With ``margins``, what ``decision_function`` returns, instead of codes: the k with the highest score
        Σ_b margin_b · sign_b, see `asymmetric_search`.

        ``where`` is a mask or ids. If it selects fewer than k codes, the last places hold nothing.
        """
        if (codes is None) == (margins is None):
            given = "neither" if codes is None else "both"
            raise ValueError(f"search takes either codes or margins, got {given}")
        if margins is not None:
            return self._search_margins(margins, k, where)
        codes = checked_codes(codes, self.n_bits)
        if where is None:
            k, scan, ids = self._current(k)
            rows, distances = scan.nearest(codes, k)
            return SearchResult(ids[rows], distances)
        k, ids, stored = self._seen(where, k)
        return ranked(codes, stored, ids, self.n_bits, k, str(self.id_type))

    def _search_margins(self, margins: Any, k: Any, where: Any) -> ScoredResult:
        margins = finite_float64(margins, "margins", ndim=2, may_be_empty=True)
        if margins.shape[1] != self.n_bits:
            raise ValueError(f"margins must have {self.n_bits} columns, one for each bit, got shape {margins.shape}")
        k, ids, stored = self._seen(where, k)
        indices, scores = no_ids((len(margins), k), str(self.id_type)), np.full((len(margins), k), -np.inf)
        kept = min(k, len(ids))
        if kept:
            found = asymmetric_search(margins, stored, kept)
            indices[:, :kept], scores[:, :kept] = ids[found.indices], found.scores
        return ScoredResult(indices, scores)

    def search_radius(self, codes: Any, radius: int, *, where: Any = None) -> RadiusResult:
        """All items at distance ``radius`` or less, nearest first, ties by id. ``where`` is a mask or ids."""
        codes = checked_codes(codes, self.n_bits)
        radius = require_radius(radius)
        if where is None:
            _, scan, ids = self._current(1)
        else:
            _, ids, stored = self._seen(where, 1)
            scan = Scan(stored, self.n_bits)
        limits, rows, distances = scan.within(codes, radius)
        return RadiusResult(limits, ids[rows], distances)

    def _seen(self, where: Any, k: Any) -> tuple[int, IdArray, NDArray[np.uint8]]:
        """The checked k, and ids and codes that a search with ``where`` may find, ids ascending."""
        with self._lock:
            ids, codes = self._rows()
        k = require_k(k, len(ids))
        if where is None:
            return k, ids, codes
        rows = _selected(where, ids, self.id_type)
        return k, ids[rows], codes[rows]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes and ids into one file, atomically."""
        with self._lock:
            ids, codes = self._rows()
            about = {"n_bits": self.n_bits, "id_type": self.id_type, "next_id": self._next_id, "model": self.model}
            if ids.dtype.kind == "O":
                ids = np.frombuffer(json.dumps(ids.tolist(), ensure_ascii=False).encode(), np.uint8)
            write_container(path, FILE, about, {"ids": plain(ids, "ids"), "codes": codes})

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: str | None = None) -> HammingIndex:
        """Read a file of `save`. Loading runs no code from the file, and a checksum covers every byte.

        ValueError: the file is damaged, of another kind or of another format; it has codes of another ``model``; ids or
        codes are invalid; or the path is a pipe, a device or a folder.
        """
        about, arrays, *_ = read_container(path, FILE)
        try:
            index, id_type = cls(about["n_bits"], about["model"]), about["id_type"]
            ids: Any = arrays["ids"]
            if id_type == TEXT:
                ids = json.loads(ids.tobytes())
            index.id_type = None if id_type is None else checked_id_type(id_type)
            index.add(arrays["codes"], ids)
            index._next_id = max(index._next_id, whole_number(about["next_id"], "next_id", least=0, most=2**63))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"{os.fspath(path)!r} is not a valid index: {error}") from None
        require_same_model(index.model, model, repr(os.fspath(path)))
        return index

    def _current(self, k: Any) -> tuple[int, Scan, IdArray]:
        """The checked k, a scan of all codes, and the id of each of its rows."""
        with self._lock:
            ids, codes = self._rows()
            k = require_k(k, len(ids))  # here, because another thread may have removed codes
            if self._scan is None:
                self._scan = Scan(codes, self.n_bits)
            return k, self._scan, ids

    def _rows(self) -> tuple[IdArray, NDArray[np.uint8]]:
        """All ids and codes."""
        if len(self._ids) != 1:
            empty = empty_ids(self.id_type or INTEGER), np.zeros((0, -(-self.n_bits // 8)), np.uint8)
            self._ids = [np.concatenate([empty[0], *self._ids])]
            self._codes = [np.concatenate([empty[1], *self._codes])]
        return self._ids[0], self._codes[0]

    def _next_ids(self, n: int) -> IdArray:
        if n and self.id_type == TEXT:
            raise ValueError("ids must be given, because those in the index are text")
        if n > LARGEST_ID - self._next_id:
            raise ValueError(f"ids after {self._next_id - 1} would not fit 64 bits; give ids of your own")
        return np.arange(self._next_id, self._next_id + n)

    def _put(self, codes: NDArray[np.uint8], ids: IdArray, *, replace: bool) -> None:
        """Store checked rows. Ids above the last one are cheap; others cost one pass over all codes."""
        if len(ids) == 0:
            return
        if ids.dtype.kind == "i" and (ids[1:] > ids[:-1]).all():  # this takes less time than sorting
            ids, codes = ids.copy(), codes.copy()  # the caller may change its own arrays
        else:
            order = order_of(ids)
            ids, codes = ids[order], codes[order]
        if not len(self) or ids[0] > self._ids[-1][-1]:
            self._ids.append(ids)
            self._codes.append(codes)
        else:
            stored, old = self._rows()
            rows = rows_of(ids, stored)
            known = rows >= 0
            if known.any() and not replace:
                raise ValueError(
                    f"ids must be new, but {shown(ids[known][0])} is there already ({known.sum()} such id(s)); "
                    "upsert replaces them"
                )
            old = old.copy()
            old[rows[known]] = codes[known]
            stored, old = np.concatenate([stored, ids[~known]]), np.concatenate([old, codes[~known]])
            order = order_of(stored)
            self._ids, self._codes = [stored[order]], [old[order]]
        self._scan, self.id_type = None, type_of(ids)
        if self.id_type == INTEGER:
            self._next_id = max(self._next_id, int(ids[-1]) + 1)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_scan", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _scan=None, _lock=threading.Lock())


def _selected(where: Any, ids: IdArray, id_type: str | None) -> NDArray[np.int64]:
    """The rows that ``where`` selects, ascending, so that ties stay in order of id."""
    listed = isinstance(where, list | tuple) and len(where) > 0 and isinstance(where[0], bool | np.bool_)
    if listed or not isinstance(where, list | tuple | Set | str):
        mask = np.asarray(where)
        if mask.dtype.kind == "b":
            if mask.shape != ids.shape:
                raise ValueError(
                    f"where: a mask must have one entry for each of the {len(ids)} code(s), got shape {mask.shape}"
                )
            return np.flatnonzero(mask)
    try:
        wanted = checked_ids(where, id_type=id_type)
    except (TypeError, ValueError) as error:
        raise type(error)(f"where: {error}") from None
    rows = rows_of(wanted, ids)
    return np.sort(rows[rows >= 0])
