"""The interface and the checks of every store: upsert, remove, search, close. Codes are packed (see ``encode``).

The classmethod ``create`` opens a store, and makes its table if there is none. It refuses a table that was made for
something else, for another number of bits or for another model, and changes nothing then. Threads may share a store: a
lock lets one call run at a time.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k, whole_number
from hashlearn.core.packages import require
from hashlearn.search.interface import NOTHING, NOWHERE, SearchResult, checked_codes, checked_ids, require_n_bits
from hashlearn.search.model_digest import checked_model, require_same_model

MOST_ROWS = np.iinfo(np.int64).max  # the largest id, so no store has more rows
GROWTH = 4  # the factor by which the number of requested neighbors grows until ties are settled


class Encoder(Protocol):
    """A fitted hasher, or anything else that turns vectors into packed codes."""

    def encode(self, X: Any) -> NDArray[np.uint8]:
        """Packed codes of the rows of X."""


class Store(ABC):
    """Codes under ids in an engine of its own. With a ``hasher``, vectors can be given instead of codes.

    ``model`` is the digest of the hasher that makes the codes, from `hashlearn.persistence.fingerprint`. It is stored
    when the table is made. A table without a digest is accepted, and stays without.

    A new store sets ``packages`` and ``extra``, has a classmethod ``create`` whose first arguments are a path and
    ``n_bits``, and implements `_count`, `_close`, `_upsert`, `_remove` and either `_ask` or `_search`.
    """

    packages: ClassVar[tuple[str, ...]]  # the modules it imports
    extra: ClassVar[str]  # ``pip install 'hashlearn[extra]'`` installs them
    _described: str = "the store"  # the table or file, for errors

    def __init__(self, n_bits: int, hasher: Encoder | None = None, model: str | None = None) -> None:
        self.n_bits = require_n_bits(n_bits)
        self.n_bytes = -(-self.n_bits // 8)
        self.hasher, self.model = hasher, checked_model(model)
        self._lock = threading.RLock()

    def upsert(self, codes: Any, ids: Any) -> None:
        """Store each code under its id, replacing the code that is stored under it. All rows are stored, or none."""
        codes = checked_codes(codes, self.n_bits)
        ids = checked_ids(ids, len(codes))
        order = np.argsort(ids, kind="stable")
        if len(ids):
            with self._lock:
                self._upsert(codes[order], ids[order])

    def remove(self, ids: Any) -> int:
        """Remove the codes with these ids and return how many there were."""
        ids = checked_ids(ids)
        if not len(ids):
            return 0
        with self._lock:
            return self._remove(ids)

    def search(self, codes: Any, k: int, *, exact: bool = True) -> SearchResult:
        """The k nearest of each code. ``exact`` compares all codes and breaks ties by id. Without it, the engine uses
        its approximate index, if it has one."""
        codes = checked_codes(codes, self.n_bits)
        k = whole_number(k, "k", least=1)
        with self._lock:
            return self._search(codes, k if k <= MOST_ROWS else require_k(k, self._count()), exact)

    def upsert_vectors(self, X: Any, ids: Any) -> None:
        """`upsert` of the hasher's codes of the rows of X."""
        self.upsert(self._encoder().encode(X), ids)

    def search_vectors(self, X: Any, k: int, *, exact: bool = True) -> SearchResult:
        """`search` for the hasher's codes of the rows of X."""
        return self.search(self._encoder().encode(X), k, exact=exact)

    def __len__(self) -> int:
        with self._lock:
            return self._count()

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
    def _count(self) -> int:
        """How many codes there are."""

    @abstractmethod
    def _close(self) -> None: ...

    def _close_after_error(self) -> None:
        """Close at the end of a ``with`` block that raised an error."""
        self._close()

    @abstractmethod
    def _upsert(self, codes: NDArray[np.uint8], ids: NDArray[np.int64]) -> None:
        """Store checked codes, at least one, ids ascending."""

    @abstractmethod
    def _remove(self, ids: NDArray[np.int64]) -> int: ...

    def _ask(self, codes: NDArray[np.uint8], count: int, exact: bool) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Ids and distances (n_codes, count) of the nearest in any order, `NOTHING` and `NOWHERE` for missing ones."""
        raise NotImplementedError

    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool) -> SearchResult:
        """By default, `_ask` for neighbors. ``k`` may be larger than the number of codes.

        An engine may return any of several equally near items at the k-th place. So an exact search asks for more than
        k, until the last distance is larger than the k-th or everything has been returned.
        """
        n = self._count()
        k = require_k(k, n)
        indices, distances = np.empty((len(codes), k), np.int64), np.empty((len(codes), k), np.int32)
        open_queries, count = np.arange(len(codes)), min(n, max(2 * k, k + 64)) if exact else k
        while len(open_queries):
            found, far = self._ask(codes[open_queries], count, exact)
            order = np.lexsort((found, far), axis=1)
            found, far = np.take_along_axis(found, order, axis=1), np.take_along_axis(far, order, axis=1)
            done = (far[:, k - 1] < far[:, -1]) | (count == n) | (not exact)
            indices[open_queries[done]], distances[open_queries[done]] = found[done, :k], far[done, :k]
            open_queries, count = open_queries[~done], min(n, GROWTH * count)
        return SearchResult(indices, distances)

    def _as_result(self, answers: list[list[tuple[int, float]]], k: int, exact: bool) -> SearchResult:
        """A result from lists of (id, distance), nearest first. A k that is too large is refused before allocation."""
        if any(len(answer) < k for answer in answers):
            require_k(k, self._count())
            if exact:
                raise RuntimeError(f"{self._described} lost rows to another writer during the search; search again")
        indices = np.full((len(answers), k), NOTHING, np.int64)
        distances = np.full((len(answers), k), NOWHERE, np.int32)
        for i, answer in enumerate(answers):
            for j, (item, distance) in enumerate(answer):
                self._require_id(item)
                indices[i, j], distances[i, j] = item, distance
        return SearchResult(indices, distances)

    def _encoder(self) -> Encoder:
        if self.hasher is None:
            raise ValueError("vectors need a hasher: open the store with hasher=..., or give codes")
        return self.hasher

    def _require_id(self, item: int) -> None:
        """Refuse an id that another program has written and that looks like a missing one in a `SearchResult`."""
        if not 0 <= item <= MOST_ROWS:
            raise ValueError(
                f"{self._described} has a row with id {item}; ids must be from 0 to 2**63 - 1, because -1 stands for "
                "nothing found"
            )

    def _require_bits(self, n_bits: int) -> None:
        """Refuse a table with codes of another number of bits."""
        if n_bits != self.n_bits:
            raise ValueError(
                f"{self._described} is there already, with codes of {n_bits} bits and not n_bits={self.n_bits}"
            )

    def _require_model(self, stored: str | None) -> None:
        """Refuse a table with codes of another model. Afterwards ``model`` is what is stored."""
        require_same_model(stored, self.model, self._described)
        self.model = stored

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
