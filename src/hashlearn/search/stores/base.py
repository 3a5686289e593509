"""What every store has: upsert, remove, search, close. Codes go in as ``encode`` returns them.

A store is opened by the ``create`` of its class, which makes the table where it is missing. It refuses a table that was
made for something else or for another number of bits, before it changes anything. Threads may share a store: a lock
lets one call run at a time.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.inputs import checked_codes, checked_ids, require_k, require_n_bits
from hashlearn.search.results import NOTHING, NOWHERE, SearchResult

MOST_ROWS = np.iinfo(np.int64).max  # the largest id, so no store has more rows


class Encoder(Protocol):
    """A fitted hasher, or anything that turns vectors into packed codes."""

    def encode(self, X: Any) -> NDArray[np.uint8]:
        """Packed codes of the rows of X."""


class Store(ABC):
    """Codes under ids in an engine of its own. With a ``hasher``, vectors can be given in place of codes."""

    _described: str = "the store"  # for errors: which table or file

    def __init__(self, n_bits: int, hasher: Encoder | None = None) -> None:
        self.n_bits = require_n_bits(n_bits)
        self.n_bytes = -(-self.n_bits // 8)
        self.hasher = hasher
        self._lock = threading.RLock()

    def upsert(self, codes: Any, ids: Any) -> None:
        """Store each code under its id; a code that is there under that id is replaced. All rows, or none."""
        codes = checked_codes(codes, self.n_bits)
        ids = checked_ids(ids, len(codes))
        order = np.argsort(ids, kind="stable")
        if len(ids):
            with self._lock:
                self._upsert(codes[order], ids[order])

    def remove(self, ids: Any) -> int:
        """Remove the codes with these ids; returns how many there were."""
        ids = checked_ids(ids)
        if not len(ids):
            return 0
        with self._lock:
            return self._remove(ids)

    def search(self, codes: Any, k: int, *, exact: bool = True) -> SearchResult:
        """The k nearest of each code. ``exact``: all codes are compared and ties are broken by id; else the engine's
        own approximate index is used where there is one."""
        codes = checked_codes(codes, self.n_bits)
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k must be an integer of at least 1, got {k!r}")
        with self._lock:
            return self._search(codes, int(k) if k <= MOST_ROWS else require_k(k, self._count()), exact)

    def upsert_vectors(self, X: Any, ids: Any) -> None:
        """`upsert` of the codes that the hasher gives the rows of X."""
        self.upsert(self._encoder().encode(X), ids)

    def search_vectors(self, X: Any, k: int, *, exact: bool = True) -> SearchResult:
        """`search` for the codes that the hasher gives the rows of X."""
        return self.search(self._encoder().encode(X), k, exact=exact)

    def __len__(self) -> int:
        with self._lock:
            return self._count()

    def close(self) -> None:
        """Give back what was opened. What was stored stays."""
        with self._lock:
            self._close()

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
        """Checked codes, at least one, ids ascending."""

    @abstractmethod
    def _remove(self, ids: NDArray[np.int64]) -> int: ...

    @abstractmethod
    def _search(self, codes: NDArray[np.uint8], k: int, exact: bool) -> SearchResult: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if error is None:
                self._close()
            else:
                self._close_after_error()

    def _encoder(self) -> Encoder:
        if self.hasher is None:
            raise ValueError("vectors need a hasher: open the store with hasher=..., or give codes")
        return self.hasher

    def _as_result(self, answers: list[list[tuple[int, float]]], k: int, exact: bool) -> SearchResult:
        """A result from lists of (id, distance), nearest first. No memory is taken for a k that is too large."""
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

    def _require_id(self, item: int) -> None:
        """Refuse an id that another program has written and that `SearchResult` cannot tell from a missing one."""
        if not 0 <= item <= MOST_ROWS:
            raise ValueError(
                f"{self._described} has a row with id {item}; ids must be from 0 to 2**63 - 1, because -1 stands for "
                "nothing found"
            )


def require_same_bits(name: str, there: Any, n_bits: int) -> None:
    """Refuse a table that was made for another number of bits."""
    if there != n_bits:
        raise ValueError(f"{name} is there already, with codes of {there} bits and not n_bits={n_bits}")


def checked_name(name: Any, argument: str, most_bytes: int | None = None) -> str:
    """A name for a table or column, refused where the engine would cut it or read another one."""
    try:
        size = len(name.encode()) if isinstance(name, str) else 0
    except UnicodeEncodeError:
        size = 0
    if size == 0 or "\0" in name:
        raise ValueError(f"{argument} must be a name: text, not empty and without NUL characters; got {name!r}")
    if most_bytes is not None and size > most_bytes:
        raise ValueError(f"{argument} must be a name of at most {most_bytes} bytes, got {size} bytes: {name!r}")
    return str(name)
