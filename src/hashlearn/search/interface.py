"""What every kind of search shares: results, and checks of codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import packed_codes
from hashlearn.core.checks import whole_number
from hashlearn.search.ids import IdArray

ByteArray: TypeAlias = NDArray[np.uint8]
RowArray: TypeAlias = NDArray[np.int64]
DistanceArray: TypeAlias = NDArray[np.int32]

MOST_BITS = 32_760  # the kernels store distances in 16 bits
# The distance in places that a search could not fill; their id is `hashlearn.search.ids.NOTHING` or None.
NOWHERE = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The k nearest of each query, shape (n_queries, k): nearest first, equal distances by ascending id.

    ``indices`` are ids: int64, or objects that are text. Exact searches fill every place, unless a filter
    leaves fewer than k items. Places that are not filled come last and hold id −1 (None among text) and the
    largest int32 as distance.
    """

    indices: IdArray
    distances: NDArray[Any]  # int32; float64 in a `ScoredResult`


class ScoredResult(SearchResult):
    """The k best of each query by a real score, shape (n_queries, k): highest first, equal scores by ascending id.

    The distance is minus the score, so the nearest is first as in every `SearchResult`. Places that could not be filled
    hold id −1 (None among text) and score −inf.

    >>> found = ScoredResult(np.array([[4, 7]]), np.array([[2.5, 1.0]]))
    >>> found
    ScoredResult(indices=array([[4, 7]]), scores=array([[2.5, 1. ]]))
    >>> found.distances
    array([[-2.5, -1. ]])
    """

    def __init__(self, indices: IdArray, scores: NDArray[np.float64]) -> None:
        super().__init__(indices, 0.0 - scores)  # a score of 0 is no −0.0

    def __repr__(self) -> str:
        return f"ScoredResult(indices={self.indices!r}, scores={self.scores!r})"

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores, highest first."""
        return 0.0 - self.distances


@dataclass(frozen=True, eq=False)
class RadiusResult:
    """All items within a radius: those of query i are ``indices[limits[i] : limits[i + 1]]``, or ``result[i]``.

    Nearest first, equal distances by ascending id; a query may have none.

    >>> found = RadiusResult(np.array([0, 2, 2]), np.array([7, 4]), np.array([0, 1], np.int32))
    >>> found[0].indices, len(found[1].indices), len(found)
    (array([7, 4]), 0, 2)
    """

    limits: RowArray  # (n_queries + 1,)
    indices: IdArray  # (n_found,)
    distances: DistanceArray  # (n_found,)

    def __len__(self) -> int:
        return len(self.limits) - 1

    def __getitem__(self, query: int) -> SearchResult:
        """The items of one query, shape (n,)."""
        if not -len(self) <= query < len(self):
            raise IndexError(f"there are {len(self)} queries, got number {query}")
        query %= len(self)
        part = slice(self.limits[query], self.limits[query + 1])
        return SearchResult(self.indices[part], self.distances[part])

    def __iter__(self) -> Iterator[SearchResult]:
        return (self[query] for query in range(len(self)))


def require_n_bits(n_bits: Any) -> int:
    """The number of bits, refused unless it is an integer from 1 to `MOST_BITS`."""
    return whole_number(n_bits, "n_bits", least=1, most=MOST_BITS)


def checked_codes(codes: Any, n_bits: int, name: str = "codes") -> NDArray[np.uint8]:
    """C-contiguous packed codes of ``n_bits`` bits, refused if width, dtype or pad bits are wrong."""
    return np.ascontiguousarray(packed_codes(codes, name, n_bits))
