"""The interface and the checks of every store: add, upsert, remove, count, search, close. Codes are packed.

`Store.open` opens a store, and makes its table if there is none. It refuses a table that was made for
something else, for another number of bits, other ids, other columns or another model, and changes nothing then.
Threads may share a store: a lock lets one call run at a time.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k, whole_number
from hashlearn.core.packages import require
from hashlearn.search.about import About
from hashlearn.search.fields import checked_fields
from hashlearn.search.ids import (
    INTEGER,
    LARGEST_ID,
    IdArray,
    checked_ids,
    no_ids,
    order_of,
    shown,
)
from hashlearn.search.interface import NOWHERE, SearchResult, checked_codes
from hashlearn.search.stores.conditions import Condition, as_condition, columns_of, require_comparable

GROWTH = 4  # the factor by which the number of requested neighbors grows until ties are settled

Fields: TypeAlias = dict[str, list[Any]]  # a list of values for each stored column
Where: TypeAlias = Condition | IdArray | None  # what a checked ``where`` is: ids are those that may be seen


class Batch(NamedTuple):
    """Checked rows on their way into a store."""

    codes: NDArray[np.uint8]
    ids: IdArray
    fields: Fields


class Store(ABC):
    """Codes under ids in an engine of its own.

    ``about`` says what the codes are: number of bits, model, type of ids, and the fields that ``where`` can ask for. It
    is stored when the table is made. A table without a model is accepted, and stays without.

    ``where`` says which rows a call may see: a mapping such as ``{"lang": "en"}``, a condition such as
    ``column("year") >= 2020``, or ids.

    A new store sets ``packages`` and ``extra``. It implements `open`, `_count`, `_close`, `_upsert`, `_remove` and
    either `_ask` or `_search`. A store without columns sets ``has_fields`` to False.
    """

    packages: ClassVar[tuple[str, ...]]  # the modules it imports
    extra: ClassVar[str]  # of pyproject.toml, which installs them
    has_fields: ClassVar[bool] = True  # whether it can keep more columns than id and code
    _described: str = "the store"  # the table or file, for errors

    def __init__(self, about: About) -> None:
        if about.fields and not self.has_fields:
            raise ValueError(f"fields: a {type(self).__name__} keeps ids and codes only; leave fields out")
        self._take(about.for_new_codes())
        self._lock = threading.RLock()

    @classmethod
    @abstractmethod
    def open(cls, *place_and_about: Any, **options: Any) -> Self:
        """``open(place, about, **options)``: open what is stored at a path or URL; make it if it is missing.

        What was made for other codes is refused. ``options`` are the store's own, such as ``table``.
        """

    def _take(self, about: About) -> None:
        self.about, self.n_bits, self.n_bytes, self.model = about, about.n_bits, about.n_bytes, about.model
        self.id_type, self.fields = str(about.id_type), dict(about.fields or {})

    def _adopt(self, stored: About, asked: About) -> None:
        """Take what is stored. Refuse it unless it is what was asked for."""
        stored.require(asked, self._described)
        self._take(stored)

    def upsert(self, codes: Any, ids: Any, fields: Mapping[str, Any] | None = None) -> None:
        """Store each code under its id, replacing the row that is stored under it. All rows are stored, or none.

        ``fields`` has a value for each code and each stored column; None is a missing value.
        """
        self._put(codes, ids, fields, replace=True)

    def add(self, codes: Any, ids: Any, fields: Mapping[str, Any] | None = None) -> None:
        """Store each code under a new id. If an id is there already, raise ValueError and store nothing."""
        self._put(codes, ids, fields, replace=False)

    def _put(self, codes: Any, ids: Any, fields: Mapping[str, Any] | None, *, replace: bool) -> None:
        codes = checked_codes(codes, self.n_bits)
        ids = checked_ids(ids, len(codes), self.id_type)
        values = checked_fields(fields, self.fields, len(codes))
        if len(ids):
            with self._lock:
                self._upsert(Batch(codes, ids, values), replace)

    def remove(self, ids: Any = None, *, where: Any = None) -> int:
        """Remove the rows with these ids, or those that fulfill ``where``, and return how many there were."""
        if (ids is None) == (where is None):
            raise ValueError(f"remove takes either ids or where, got {'neither' if ids is None else 'both'}")
        seen = self._checked_where(where) if ids is None else checked_ids(ids, id_type=self.id_type)
        if seen is None or (not isinstance(seen, Condition) and len(seen) == 0):
            return 0
        with self._lock:
            return self._remove(seen)

    def count(self, where: Any = None) -> int:
        """How many codes there are, or how many of them fulfill ``where``."""
        seen = self._checked_where(where)
        with self._lock:
            return self._count(seen)

    def search(self, codes: Any, k: int, *, exact: bool = True, where: Any = None) -> SearchResult:
        """The k nearest of each code. ``exact`` compares all codes and breaks ties by id. Without it, the engine uses
        its approximate index, if it has one.

        ``where`` says which rows may be found. If there are fewer than k of them, the last places hold nothing.
        """
        codes = checked_codes(codes, self.n_bits)
        k = whole_number(k, "k", least=1)
        seen = self._checked_where(where)
        with self._lock:
            if k > LARGEST_ID:
                require_k(k, self._count())
            return self._search(codes, k, exact, seen)

    def __len__(self) -> int:
        return self.count()

    def close(self) -> None:
        """Close connections and files. The stored codes stay."""
        with self._lock:
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        with self._lock:
            if error is None:
                self._close()
            else:
                self._close_after_error()

    @abstractmethod
    def _count(self, where: Where = None) -> int:
        """How many codes there are among the rows of ``where``."""

    @abstractmethod
    def _close(self) -> None: ...

    def _close_after_error(self) -> None:
        """Close at the end of a ``with`` block that raised an error."""
        self._close()

    @abstractmethod
    def _upsert(self, batch: Batch, replace: bool) -> None:
        """Store checked rows, at least one. Without ``replace``, `_refuse_known` ids that are there already."""

    def _load(self, batches: Iterable[Batch], replace: bool) -> None:
        """Store many batches, whose ids are distinct, so that all become visible, or none. By default, all rows are one
        `_upsert`.
        """
        parts = list(batches)
        if parts:
            fields = {name: [value for part in parts for value in part.fields[name]] for name in self.fields}
            codes, ids = (np.concatenate(arrays) for arrays in zip(*((p.codes, p.ids) for p in parts), strict=True))
            self._upsert(Batch(codes, ids, fields), replace)

    @abstractmethod
    def _remove(self, where: Any) -> int:
        """Remove the rows with these ids, at least one, or those that fulfill a condition; return how many."""

    def _ask(
        self, codes: NDArray[np.uint8], count: int, exact: bool, where: Where
    ) -> tuple[IdArray, NDArray[np.int32]]:
        """Ids and distances (n_codes, count) of the nearest in any order; what is missing comes last in each row, with
        no id and the distance `NOWHERE`."""
        raise NotImplementedError

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool, where: Where) -> SearchResult:
        """By default, `_ask` for neighbors. ``k`` may be larger than the number of codes.

        An engine may return any of several equally near items at the k-th place. So an exact search asks for more than
        k, until the last distance is larger than the k-th or everything has been returned.
        """
        require_k(k, self._count())
        n = self._count(where)
        ids, distances = no_ids((len(codes), k), self.id_type), np.full((len(codes), k), NOWHERE, np.int32)
        kept = min(k, n)
        open_queries, count = np.arange(len(codes) if n else 0), min(n, max(2 * k, k + 64)) if exact else kept
        while len(open_queries):
            found, far = self._ask(codes[open_queries], count, exact, where)
            last = np.partition(far, kept - 1, axis=1)[:, kept - 1]
            done = (far.max(axis=1) > last) | (count == n) | (not exact)
            for query in np.flatnonzero(done):
                near = np.flatnonzero(far[query] < NOWHERE)
                near = near[order_of(found[query][near])]
                near = near[np.argsort(far[query][near], kind="stable")][:kept]
                row = open_queries[query]
                ids[row, : len(near)], distances[row, : len(near)] = found[query][near], far[query][near]
            open_queries, count = open_queries[~done], min(n, GROWTH * count)
        return SearchResult(ids, distances)

    def _as_result(self, answers: list[list[tuple[Any, float]]], k: int, *, whole: bool) -> SearchResult:
        """A result from lists of (id, distance), nearest first. A k that is too large is refused before allocation.

        ``whole`` means that every list must have k items.
        """
        if any(len(answer) < k for answer in answers):
            require_k(k, self._count())
            if whole:
                raise RuntimeError(f"{self._described} lost rows to another writer during the search; search again")
        indices, distances = no_ids((len(answers), k), self.id_type), np.full((len(answers), k), NOWHERE, np.int32)
        for i, answer in enumerate(answers):
            for j, (item, distance) in enumerate(answer):
                indices[i, j], distances[i, j] = self._required_id(item), distance
        return SearchResult(indices, distances)

    def _checked_where(self, where: Any) -> Where:
        """``where`` as a condition on stored columns, or as ids."""
        if where is None:
            return None
        if not isinstance(where, Condition | Mapping):
            return checked_ids(where, id_type=self.id_type)
        if not self.has_fields:
            raise ValueError(f"where: a {type(self).__name__} keeps ids and codes only; give the ids that may be found")
        condition = as_condition(where)
        unknown = sorted(columns_of(condition) - set(self._columns()))
        if unknown:
            there = ", ".join(map(repr, self._columns())) or "none"
            raise ValueError(f"where: {self._described} has no column {unknown[0]!r}; its columns are {there}")
        require_comparable(condition, self.fields)
        return condition

    def _columns(self) -> Iterable[str]:
        """The columns that ``where`` may name."""
        return self.fields

    def _required_id(self, item: Any) -> Any:
        """An id as it is stored, refused if another program has written one that looks like nothing found."""
        if self.id_type == INTEGER and not 0 <= item <= LARGEST_ID:
            raise ValueError(
                f"{self._described} has a row with id {item}; ids must be from 0 to 2**63 - 1, because -1 stands for "
                "nothing found"
            )
        return item if self.id_type == INTEGER else str(item)  # a UUID is text

    def _refuse_known(self, known: Any, count: int) -> None:
        """Refuse ids that are there already; ``known`` is one of them."""
        raise ValueError(
            f"ids must be new, but {shown(known)} is in {self._described} already ({count} such id(s)); "
            "upsert, or a load with duplicates='replace', replaces them"
        )

    @classmethod
    def _package(cls, module: str) -> Any:
        return require(module, cls.extra, f"a {cls.__name__}")


def checked_name(name: Any, argument: str, most_bytes: int | None = None) -> str:
    """A name for a table or column, refused if the engine would cut it or read another name."""
    try:
        size = len(name.encode()) if isinstance(name, str) else 0
    except UnicodeEncodeError:
        size = 0
    if size == 0 or "\0" in name:
        raise ValueError(f"{argument} must be a name: text, not empty and without NUL characters; got {name!r}")
    if most_bytes is not None and size > most_bytes:
        raise ValueError(f"{argument} must be a name of at most {most_bytes} bytes, got {size} bytes: {name!r}")
    return str(name)
