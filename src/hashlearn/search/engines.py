"""The interface of backends. A backend holds settings only; it builds an engine, which holds codes."""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

ByteArray: TypeAlias = NDArray[np.uint8]
RowArray: TypeAlias = NDArray[np.int64]
DistanceArray: TypeAlias = NDArray[np.int32]


class Engine(Protocol):
    """Codes in a form that can be searched. Rows are numbered in the order of the codes.

    Results are in order of (distance, row).
    """

    def extend(self, codes: ByteArray) -> bool:
        """Append more codes; False if building a new engine is as cheap or better."""

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        """Rows and distances, shape (n_queries, k); row −1 where an approximate engine found fewer."""

    def within(self, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
        """Limits, rows and distances of all items at most ``radius`` away. Every engine is exact here."""


class Backend(Protocol):
    """Settings of an engine: a frozen dataclass."""

    name: ClassVar[str]
    exact: ClassVar[bool]  # whether `Engine.nearest` always finds the true k nearest

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""
