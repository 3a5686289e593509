"""The interface and the checks of every store: add, upsert, load, remove, count, search, close. Codes are packed.

`Store.open` opens what is there, or makes it. A table or file that was made for something else, for another number of
bits, other ids, other columns or another model, is refused and stays as it was.
Threads may share a store: a lock lets one call run at a time.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.atomic_files import regular_file
from hashlearn.core.checks import require_k, whole_number
from hashlearn.core.names import require_choice
from hashlearn.core.packages import require
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.search.about import About, require_same_model
from hashlearn.search.arrow import (
    PURPOSE,
    ROWS,
    about_codes,
    codes_of_column,
    codes_reader,
    id_column,
    ids_from_arrow,
    require_distinct,
)
from hashlearn.search.fields import checked_fields
from hashlearn.search.ids import (
    INTEGER,
    LARGEST_ID,
    WORDS,
    IdArray,
    checked_ids,
    no_ids,
    order_of,
    shown,
)
from hashlearn.search.interface import NOWHERE, ScoredResult, SearchResult, checked_codes
from hashlearn.search.rescoring import rescore
from hashlearn.search.stores.conditions import Condition, as_condition, columns_of, require_comparable

DUPLICATES = ("replace", "refuse")
NOTHING_THERE = "nothing is stored at {}; with about=About(n_bits) it is made"
GROWTH = 4  # the factor by which the number of requested neighbors grows until ties are settled

Fields: TypeAlias = dict[str, list[Any]]  # a list of values for each stored column
Where: TypeAlias = Condition | IdArray | None  # what a checked ``where`` is: ids are those that may be seen


class Batch(NamedTuple):
    """Checked rows on their way into a store."""

    codes: NDArray[np.uint8]
    ids: IdArray
    fields: Fields


class Store(ABC):
    """Codes under ids in an engine of its own. Open it with `open`.

    ``about`` says what the codes are: number of bits, model, type of ids, and the fields that ``where`` can ask for. It
    is stored when the table is made. A table without a model is accepted, and stays without.

    ``where`` says which rows a call may see: a mapping such as ``{"lang": "en"}``, a condition such as
    ``column("year") >= 2020``, or ids.

    A new store sets ``packages`` and ``extra``, and ``signature`` if its place is one file. It implements
    ``__init__(place, **options)``, `_open`, `_close`, `_count`, `_put`, `_remove` and either `_ask` or `_search`. A
    store without columns sets ``has_fields`` to False.
    """

    packages: ClassVar[tuple[str, ...]]  # the modules it imports
    extra: ClassVar[str]  # of pyproject.toml, which installs them
    has_fields: ClassVar[bool] = True  # whether it can keep more columns than id and code
    is_local: ClassVar[bool] = True  # whether its place is a path
    signature: ClassVar[tuple[int, bytes]] = (0, b"")  # of its files: an offset, from the end if below 0, and bytes
    _described: str  # the table or file, for errors

    about: About
    n_bits: int
    n_bytes: int
    id_type: str
    model: str | None
    fields: dict[str, str]

    def __init__(self, place: Any) -> None:
        self.place = place
        for module in self.packages:
            self._package(module)
        self._lock: Any = threading.RLock()

    @classmethod
    def open(cls, place: Any, about: About | None = None, **options: Any) -> Self:
        """Open what is stored at a path or URL; if nothing is, make it for the codes of ``about``.

        What is there is refused if it was made for other codes than those of ``about``. With None, anything is taken,
        and it must be there. ``options`` are those of the store, such as ``table``.
        """
        if about is None and cls.is_local and (place is None or not os.path.exists(place)):
            raise FileNotFoundError(NOTHING_THERE.format(repr(place)))
        store = cls(place, **options)
        try:
            with store._lock:
                store._open(about)
        except BaseException:
            store._close_after_error()
            raise
        return store

    @classmethod
    def is_at(cls, place: str) -> bool:
        """Whether there is a store of this engine at a place, by the ``signature`` of its file."""
        offset, signature = cls.signature
        with suppress(OSError, ValueError), regular_file(place) as (file, _):
            file.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
            return signature != b"" and file.read(len(signature)) == signature
        return False

    @abstractmethod
    def _open(self, asked: About | None) -> None:
        """Connect to the engine, `_adopt` what is there or else what is asked for, and make what is missing."""

    def _adopt(self, stored: About | None, asked: About | None) -> About:
        """Take what is stored, refused unless it is what was asked for; if nothing is stored, take what was asked for.

        This sets ``about`` and what follows from it.
        """
        if asked is not None and asked.fields and not self.has_fields:
            raise ValueError(f"fields: a {type(self).__name__} keeps ids and codes only; leave fields out")
        if stored is not None and asked is not None:
            stored.require(asked, self._described)
        about = stored or (asked and asked.for_new_codes())
        if about is None:
            raise FileNotFoundError(NOTHING_THERE.format(self._described))
        self.about, self.n_bits, self.n_bytes, self.model = about, about.n_bits, about.n_bytes, about.model
        self.id_type, self.fields = str(about.id_type), dict(about.fields or {})
        return about

    def upsert(self, codes: Any, ids: Any, fields: Mapping[str, Any] | None = None) -> None:
        """Store each code under its id, replacing the row that is stored under it. All rows are stored, or none.

        ``fields`` has a value for each code and each stored column; None is a missing value.
        """
        self._put_checked(codes, ids, fields, replace=True)

    def add(self, codes: Any, ids: Any, fields: Mapping[str, Any] | None = None) -> None:
        """Store each code under a new id. If an id is there already, raise ValueError and store nothing."""
        self._put_checked(codes, ids, fields, replace=False)

    def _put_checked(self, codes: Any, ids: Any, fields: Mapping[str, Any] | None, *, replace: bool) -> None:
        codes = checked_codes(codes, self.n_bits)
        ids = checked_ids(ids, len(codes), self.id_type)
        values = checked_fields(fields, self.fields, len(codes))
        if len(ids):
            with self._lock:
                self._put([Batch(codes, ids, values)], replace)

    def load(self, reader: Any, *, duplicates: str = "replace", progress: ProgressCallback | None = None) -> int:
        """Store all rows of a `pyarrow.RecordBatchReader`, a table, or a Parquet file of codes, and return how many.

        They become visible together, in one transaction or with one atomic save. The fields of the store are taken by
        their names; other columns are left out. An id that is stored already has its row replaced, or is refused with
        ``duplicates="refuse"``. An id that the rows have twice is always refused. ``progress`` is called with a
        `hashlearn.core.progress.Progress` after each batch.

        Memory: one batch, and all ids for the check that none occurs twice; stores in a file of FAISS or usearch hold
        all rows.
        """
        require_choice(duplicates, "duplicates", DUPLICATES)
        reader = codes_reader(reader)
        self._require_fitting(about_codes(reader.schema))
        read = [0]  # the number of rows so far
        with self._lock:
            self._put(self._batches(reader, read, progress), duplicates == "replace")
        return read[0]

    def _require_fitting(self, about: About) -> None:
        """Refuse rows of other bits, ids or columns than the store's, or of another model."""
        if about.n_bits != self.n_bits:
            raise ValueError(f"rows have codes of {about.n_bits} bits, and {self._described} of {self.n_bits}")
        if about.id_type != self.id_type:
            asked, stored = WORDS[str(about.id_type)], WORDS[self.id_type]
            raise TypeError(f"rows have ids that are {asked}, and {self._described} ids that are {stored}")
        fields = about.fields or {}
        for name, kind in self.fields.items():
            if fields.get(name) not in (kind, "integer" if kind == "real" else kind):
                there = fields.get(name, "missing")
                raise ValueError(f"rows have no column {name!r} of {kind} for {self._described}: it is {there}")
        require_same_model(about.model, self.model, "reader")

    def _batches(self, reader: Any, read: list[int], progress: ProgressCallback | None) -> Iterator[Batch]:
        """The rows as checked batches; ``read`` gets their number. An id that occurs twice is refused at the end."""
        columns: list[Any] = []
        hashes: list[NDArray[np.int64]] = []  # of the ids, which take less memory than a set of them
        total = int(reader.schema.metadata.get(ROWS, 0)) or None
        for part in reader:
            codes, column = codes_of_column(part["code"], self.n_bits), id_column(part["id"])
            values = checked_fields({name: part[name] for name in self.fields}, self.fields, len(codes))
            ids = ids_from_arrow(column, distinct=False)
            columns.append(column)
            hashes.append(np.fromiter(map(hash, ids.tolist()), np.int64, len(ids)))
            _require_distinct(columns, hashes[-1:])
            yield Batch(codes, ids, values)
            read[0] += len(codes)
            tell(progress, f"loading into {self._described}", read[0], total)
        _require_distinct(columns, hashes)

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

    def search_rescored(
        self,
        codes: Any,
        vectors: Any,
        k: int,
        *,
        depth: int,
        metric: str = "cosine",
        where: Any = None,
        exact: bool = True,
        database_vectors: Any = None,
        ids: Any = None,
    ) -> ScoredResult:
        """The ``depth`` nearest by codes, of which the k best by their float vectors; see `hashlearn.search.rescore`.

        ``vectors`` are those of the queries. ``database_vectors`` are those of the rows: an array, or a file that
        `hashlearn.files.open_rows` opened. ``ids`` are the ids of its rows, if they are not the row numbers.
        """
        if database_vectors is None:
            raise ValueError(f"{self._described} has no vectors of its own; give database_vectors, and their ids")
        depth = whole_number(depth, "depth", least=whole_number(k, "k", least=1))
        found = self.search(codes, max(k, min(depth, self.count())), exact=exact, where=where)
        return rescore(found, vectors, database_vectors, k, metric=metric, ids=ids)

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
    def _put(self, batches: Iterable[Batch], replace: bool) -> None:
        """Store checked batches, so that all rows become visible, or none if the batches end in an error.

        The ids of one batch are distinct. Without ``replace``, `_refuse_known` ids that are there already.
        """

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


def _require_distinct(columns: list[Any], hashes: list[NDArray[np.int64]]) -> None:
    """Refuse columns of ids if one occurs twice; without equal ``hashes`` none does."""
    numbers = np.sort(np.concatenate(hashes)) if hashes else np.zeros(0, np.int64)
    if (numbers[1:] == numbers[:-1]).any():
        require_distinct(require("pyarrow", "parquet", PURPOSE).chunked_array(columns))


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
