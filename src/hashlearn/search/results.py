"""The results of a search: ids and distances, nearest first, ties by id."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

IdArray: TypeAlias = NDArray[np.int64]

# Id and distance in places that an approximate search could not fill.
NOTHING = -1
NOWHERE = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The k nearest of each query, shape (n_queries, k): nearest first, equal distances by ascending id.

    Exact searches fill every place. An approximate one that finds fewer than k leaves id −1 and the largest int32 as
    distance in the last places.
    """

    indices: IdArray
    distances: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ScoredResult:
    """The k best of each query by a real score, shape (n_queries, k): highest first, equal scores by ascending id.

    Places that could not be filled hold id −1 and score −inf.
    """

    indices: IdArray
    scores: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RadiusResult:
    """All items within a radius: those of query i are ``indices[limits[i] : limits[i + 1]]``, or ``result[i]``.

    Nearest first, equal distances by ascending id; a query may have none.

    >>> found = RadiusResult(np.array([0, 2, 2]), np.array([7, 4]), np.array([0, 1], np.int32))
    >>> found[0].indices, len(found[1].indices), len(found)
    (array([7, 4]), 0, 2)
    """

    limits: IdArray  # (n_queries + 1,)
    indices: IdArray  # (n_found,)
    distances: NDArray[np.int32]  # (n_found,)

    def __len__(self) -> int:
        return len(self.limits) - 1

    def __getitem__(self, query: int) -> Found:
        if not -len(self) <= query < len(self):
            raise IndexError(f"there are {len(self)} queries, got number {query}")
        query %= len(self)
        part = slice(self.limits[query], self.limits[query + 1])
        return Found(self.indices[part], self.distances[part])

    def __iter__(self) -> Iterator[Found]:
        return (self[query] for query in range(len(self)))


@dataclass(frozen=True, eq=False)
class Found:
    """The items of one query of a `RadiusResult`."""

    indices: IdArray
    distances: NDArray[np.int32]
