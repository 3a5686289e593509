"""What every store has: upsert, remove, search, close. Codes go in as ``encode`` returns them.

A store is opened by the ``create`` of its class, which makes the table where it is missing and refuses one made for
another number of bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.inputs import checked_codes, checked_ids, require_k, require_n_bits
from hashlearn.search.results import NOTHING, NOWHERE, SearchResult


class Encoder(Protocol):
    """A fitted hasher, or anything that turns vectors into packed codes."""

    def encode(self, X: Any) -> NDArray[np.uint8]:
        """Packed codes of the rows of X."""


class Store(ABC):
    """Codes under ids in an engine of its own. With a ``hasher``, vectors can be given in place of codes."""

    def __init__(self, n_bits: int, hasher: Encoder | None = None) -> None:
        self.n_bits = require_n_bits(n_bits)
        self.n_bytes = -(-self.n_bits // 8)
        self.hasher = hasher

    def upsert(self, codes: Any, ids: Any) -> None:
        """Store each code under its id; a code that is there under that id is replaced. All rows, or none."""
        codes = checked_codes(codes, self.n_bits)
        ids = checked_ids(ids, len(codes))
        order = np.argsort(ids, kind="stable")
        if len(ids):
            self._upsert(codes[order], ids[order])

    def remove(self, ids: Any) -> int:
        """Remove the codes with these ids; returns how many there were."""
        ids = checked_ids(ids)
        return self._remove(ids) if len(ids) else 0

    def search(self, codes: Any, k: int, *, exact: bool = True) -> SearchResult:
        """The k nearest of each code. ``exact``: all codes are compared and ties are broken by id; else the engine's
        own approximate index is used where there is one."""
        codes = checked_codes(codes, self.n_bits)
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k must be an integer of at least 1, got {k!r}")
        return self._search(codes, int(k), exact)

    def upsert_vectors(self, X: Any, ids: Any) -> None:
        """`upsert` of the codes that the hasher gives the rows of X."""
        self.upsert(self._encoder().encode(X), ids)

    def search_vectors(self, X: Any, k: int, *, exact: bool = True) -> SearchResult:
        """`search` for the codes that the hasher gives the rows of X."""
        return self.search(self._encoder().encode(X), k, exact=exact)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def close(self) -> None:
        """Give back what was opened. What was stored stays."""

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
        self.close()

    def _encoder(self) -> Encoder:
        if self.hasher is None:
            raise ValueError("vectors need a hasher: open the store with hasher=..., or give codes")
        return self.hasher

    def _as_result(self, answers: list[list[tuple[int, float]]], k: int, exact: bool) -> SearchResult:
        """A result from lists of (id, distance), nearest first. Too few of an exact search: there are no more."""
        indices = np.full((len(answers), k), NOTHING, np.int64)
        distances = np.full((len(answers), k), NOWHERE, np.int32)
        for i, answer in enumerate(answers):
            if exact and len(answer) < k:
                require_k(k, len(self))
            for j, (item, distance) in enumerate(answer):
                indices[i, j], distances[i, j] = item, distance
        return SearchResult(indices, distances)


def require_same_bits(name: str, there: Any, n_bits: int) -> None:
    """Refuse a table that was made for another number of bits."""
    if there != n_bits:
        raise ValueError(f"{name} is there already, with codes of {there} bits and not n_bits={n_bits}")
