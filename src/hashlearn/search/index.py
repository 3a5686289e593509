"""`HammingIndex`: packed codes in, neighbors out, by an exact scan of all codes."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Set
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k, require_radius, whole_number
from hashlearn.core.container import Kind, plain, read_container, write_container
from hashlearn.search.about import About, require_same_model
from hashlearn.search.asymmetric import best_scores, checked_margins
from hashlearn.search.ids import (
    INTEGER,
    LARGEST_ID,
    NOTHING,
    TEXT,
    IdArray,
    checked_ids,
    empty_ids,
    ids_at,
    order_of,
    rows_of,
    shown,
    type_of,
)
from hashlearn.search.interface import NOWHERE, RadiusResult, RowArray, ScoredResult, SearchResult, checked_codes
from hashlearn.search.rescoring import Vectors, best_by_vectors, rescore
from hashlearn.search.scan import Scan

FILE = Kind("index", "hashlearn index", 1)


class Table(NamedTuple):
    """The rows of an index, by ascending id. No array is changed in place: a search in another thread may read it."""

    ids: NDArray[Any]
    codes: NDArray[Any]
    places: NDArray[Any]  # (n, 1): where the vectors of an index have that of the row; (n, 0) without vectors

    def at(self, rows: RowArray) -> Table:
        """These rows."""
        return Table(*(column[rows] for column in self))


class HammingIndex:
    """Search packed codes by Hamming distance, or by the margins of the query.

    Parameters
    ----------
    n_bits : length of a code; codes have ⌈n_bits / 8⌉ bytes, big-endian, pad bits zero, as ``encode`` returns them
    model : digest of the hasher that makes the codes, from `hashlearn.persistence.fingerprint`; `save` stores it

    Every search is exact, and ties are broken by id. The first search after a change copies all codes once. For
    approximate searches, see `hashlearn.search.stores.FaissStore`.

    Ids are integers from 0 to 2⁶³ − 1, or text. An index has one kind of ids, that of the first ids added.

    ``vectors`` are float vectors beside the codes, of all rows or of none: `search_rescored` ranks candidates by them.
    An array, a file of `hashlearn.files.open_rows` or a memory-mapped array is not copied, so leave it as it is.

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
        about = About(n_bits, model=model)
        self.n_bits, self.model = about.n_bits, about.model
        self.id_type: str | None = None  # "int64" or "string", that of the first ids
        self._next_id = 0  # larger than every integer that was ever an id
        self._parts: list[Table] = []  # with ascending ids, joined when they are read
        self._vectors: Vectors | None = None
        self._scan: Scan | None = None  # of all codes; None after a change
        self._lock = threading.Lock()

    @property
    def has_vectors(self) -> bool:
        """Whether the rows have float vectors beside their codes."""
        return self._vectors is not None

    def __len__(self) -> int:
        return sum(len(part.ids) for part in self._parts)

    def __repr__(self) -> str:
        return f"HammingIndex(n_bits={self.n_bits}): {len(self)} code(s)"

    @property
    def ids(self) -> IdArray:
        """All ids, ascending: int64, or objects that are text."""
        with self._lock:
            return self._table().ids.copy()

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of `ids`."""
        with self._lock:
            return self._table().codes.copy()

    def add(self, codes: Any, ids: Any = None, vectors: Any = None) -> IdArray:
        """Add codes under new ids (None: the next free integers, from 0) and return the ids. All are added, or none."""
        return self._put(codes, ids, vectors, replace=False)

    def upsert(self, codes: Any, ids: Any, vectors: Any = None) -> None:
        """Store each code under its id, in place of the code that is there. All are stored, or none."""
        self._put(codes, ids, vectors, replace=True)

    def remove(self, ids: Any = None, *, where: Any = None) -> int:
        """Remove codes by id, or those of ``where``, and return how many.

        If one of ``ids`` is missing, raise KeyError and remove nothing.
        """
        if (ids is None) == (where is None):
            raise ValueError(f"remove takes either ids or where, got {'neither' if ids is None else 'both'}")
        with self._lock:
            table = self._table()
            if ids is None:
                rows = _selected(where, table.ids, self.id_type)
            else:
                ids = checked_ids(ids, id_type=self.id_type)
                rows = rows_of(ids, table.ids)
                if (missing := ids[rows < 0]).size:
                    raise KeyError(
                        f"ids must be in the index, but {shown(missing[0])} is not ({len(missing)} such id(s))"
                    )
            self._parts, self._scan = [table.at(np.delete(np.arange(len(table.ids)), rows))], None
            self._forget_vectors()
            return len(rows)

    def count(self, where: Any = None) -> int:
        """How many codes there are, or how many of them ``where`` selects."""
        with self._lock:
            return len(self) if where is None else len(_selected(where, self._table().ids, self.id_type))

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
        table, rows, values, _ = self._nearest(codes, k, margins, where)
        return (SearchResult if margins is None else ScoredResult)(ids_at(table.ids, rows), values)

    def search_rescored(
        self,
        codes: Any,
        vectors: Any,
        k: int,
        *,
        depth: int,
        metric: str = "cosine",
        where: Any = None,
        database_vectors: Any = None,
        ids: Any = None,
        margins: Any = None,
    ) -> ScoredResult:
        """The ``depth`` nearest by codes or margins, of which the k best by their vectors, see `rescore`.

        ``vectors`` are the float vectors of the queries. Those of the rows are what `add` took, or
        ``database_vectors``: an array, or a file that `hashlearn.files.open_rows` opened. ``ids`` are the ids of its
        rows, if they are not the row numbers.
        """
        depth = whole_number(depth, "depth", least=whole_number(k, "k", least=1))
        table, rows, _, own = self._nearest(codes, max(k, min(depth, len(self))), margins, where)
        found = ids_at(table.ids, rows)
        if database_vectors is not None:
            return rescore(found, vectors, database_vectors, k, metric=metric, ids=ids)
        if own is None:
            raise ValueError("the index has no vectors; add codes with vectors, or give database_vectors")
        places = ids_at(table.places[:, 0], rows)
        return best_by_vectors(found, places, rows, vectors, own, k, metric)

    def search_radius(self, codes: Any, radius: int, *, where: Any = None) -> RadiusResult:
        """All items at distance ``radius`` or less, nearest first, ties by id. ``where`` is a mask or ids."""
        codes, radius = checked_codes(codes, self.n_bits), require_radius(radius)
        table, scan, _, _ = self._seen(where, 1)
        limits, rows, distances = scan.within(codes, radius)
        return RadiusResult(limits, table.ids[rows], distances)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write codes, ids and vectors into one file, atomically."""
        with self._lock:
            table, arrays = self._table(), {}
            if self._vectors is not None:
                table, arrays["vectors"] = self._with_vectors(self._vectors)
            ids = table.ids
            if ids.dtype.kind == "O":
                ids = np.frombuffer(json.dumps(ids.tolist(), ensure_ascii=False).encode(), np.uint8)
            arrays |= {"ids": plain(ids, "ids"), "codes": table.codes}
            about = About(self.n_bits, self.id_type, self.model)
            write_container(path, FILE, {"about": about.to_json(), "next_id": self._next_id}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: str | None = None) -> HammingIndex:
        """Read a file of `save`. Loading runs no code from the file, and a checksum covers every byte.

        ValueError: the file is damaged, of another kind or of another format; it has codes of another ``model``; ids,
        codes or vectors are invalid; or the path is a pipe, a device or a folder.
        """
        description, arrays, *_ = read_container(path, FILE)
        try:
            about = About.from_json(description["about"])
            index, ids = cls(about.n_bits, about.model), arrays["ids"]
            index.id_type = about.id_type
            ids = json.loads(ids.tobytes()) if about.id_type == TEXT else ids
            index.add(arrays["codes"], ids, arrays.get("vectors"))
            index._next_id = max(index._next_id, whole_number(description["next_id"], "next_id", least=0, most=2**63))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"{os.fspath(path)!r} is not a valid index: {error}") from None
        require_same_model(index.model, model, repr(os.fspath(path)))
        return index

    def _nearest(self, codes: Any, k: Any, margins: Any, where: Any) -> tuple[Table, RowArray, Any, Vectors | None]:
        """Rows of the k nearest, −1 for none, in the table that is returned, and their distances or scores."""
        if (codes is None) == (margins is None):
            raise ValueError(f"search takes either codes or margins, got {'neither' if codes is None else 'both'}")
        queries: Any = checked_codes(codes, self.n_bits) if margins is None else checked_margins(margins, self.n_bits)
        table, scan, k, vectors = self._seen(where, k)
        rows = np.full((len(queries), k), NOTHING)
        values: Any = np.full(rows.shape, NOWHERE, np.int32) if margins is None else np.full(rows.shape, -np.inf)
        if filled := min(k, len(table.ids)):
            search = scan.nearest if margins is None else partial(best_scores, scan)
            rows[:, :filled], values[:, :filled] = search(queries, filled)
        return table, rows, values, vectors

    def _seen(self, where: Any, k: Any) -> tuple[Table, Scan, int, Vectors | None]:
        """The part of the table that a search with ``where`` may find, a scan of its codes, and the checked k."""
        with self._lock:
            table, vectors = self._table(), self._vectors
            k = require_k(k, len(table.ids))  # here, because another thread may have removed codes
            if where is None:
                self._scan = self._scan or Scan(table.codes, self.n_bits)
                return table, self._scan, k, vectors
        rows = _selected(where, table.ids, self.id_type)
        table = table.at(rows)
        return table, Scan(table.codes, self.n_bits), k, vectors

    def _table(self) -> Table:
        """All rows."""
        if len(self._parts) != 1:
            codes = np.zeros((0, -(-self.n_bits // 8)), np.uint8)
            places = np.zeros((0, int(self._vectors is not None)), np.int64)
            empty = Table(empty_ids(self.id_type or INTEGER), codes, places)
            self._parts = [Table(*(np.concatenate(columns) for columns in zip(empty, *self._parts, strict=True)))]
        return self._parts[0]

    def _put(self, codes: Any, ids: Any, vectors: Any, *, replace: bool) -> IdArray:
        """Store rows and return their ids. Ids above the last one are cheap; others cost one pass over all rows."""
        codes = checked_codes(codes, self.n_bits)
        with self._lock:
            ids = self._next_ids(len(codes)) if ids is None else checked_ids(ids, len(codes), self.id_type)
            if len(ids) == 0:
                return ids
            if len(self) and (vectors is None) != (self._vectors is None):
                there = "without" if self._vectors is None else "with"
                raise ValueError(f"vectors must be given for all codes or none; the codes there are {there} vectors")
            joined = None if vectors is None else Vectors(vectors, len(codes), behind=self._vectors)
            places = np.zeros((len(codes), 0), np.int64)
            if joined is not None:
                places = np.arange(joined.n_rows - len(codes), joined.n_rows).reshape(-1, 1)
            if ids.dtype.kind == "i" and (ids[1:] > ids[:-1]).all():  # this takes less time than sorting
                new = Table(ids.copy(), codes.copy(), places)  # the caller may change its own arrays
            else:
                new = Table(ids, codes, places).at(order_of(ids))
            if len(self) and new.ids[0] <= self._parts[-1].ids[-1]:
                self._parts = [self._merged(self._table(), new, replace)]
            else:
                self._parts = [*self._parts, new] if len(self) else [new]
            self._scan, self._vectors = None, joined
            self.id_type = type_of(ids)
            if self.id_type == INTEGER:
                self._next_id = max(self._next_id, int(new.ids[-1]) + 1)
            self._forget_vectors()
            return ids

    @staticmethod
    def _merged(old: Table, new: Table, replace: bool) -> Table:
        rows = rows_of(new.ids, old.ids)
        known = rows >= 0
        if known.any() and not replace:
            raise ValueError(
                f"ids must be new, but {shown(new.ids[known][0])} is there already ({known.sum()} such id(s)); "
                "upsert replaces them"
            )
        left = old.at(np.delete(np.arange(len(old.ids)), rows[known]))
        joined = Table(*map(np.concatenate, zip(left, new, strict=True)))
        return joined.at(order_of(joined.ids))

    def _next_ids(self, n: int) -> IdArray:
        if n and self.id_type == TEXT:
            raise ValueError("ids must be given, because those in the index are text")
        if n > LARGEST_ID - self._next_id:
            raise ValueError(f"ids after {self._next_id - 1} would not fit 64 bits; give ids of your own")
        return np.arange(self._next_id, self._next_id + n)

    def _with_vectors(self, vectors: Vectors) -> tuple[Table, NDArray[Any]]:
        """The rows in the order of their vectors, and the vectors."""
        table = self._table()
        table = table.at(np.argsort(table.places[:, 0]))
        return table, vectors.taken(table.places[:, 0])

    def _forget_vectors(self) -> None:
        """Copy the vectors of the rows, if more than half of those in memory belong to no row any more."""
        if not len(self):
            self._parts, self._vectors = [], None
        elif self._vectors is not None and self._vectors.in_memory and self._vectors.n_rows > 2 * len(self):
            table, array = self._with_vectors(self._vectors)
            order = order_of(table.ids)
            self._parts = [Table(table.ids[order], table.codes[order], order.reshape(-1, 1))]
            self._vectors = Vectors(array, len(array))

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
