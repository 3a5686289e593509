"""What an index asks of a backend. A backend holds settings only; what it builds is an engine that holds codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.scan import Scan

ByteArray: TypeAlias = NDArray[np.uint8]
RowArray: TypeAlias = NDArray[np.int64]
DistanceArray: TypeAlias = NDArray[np.int32]


class Engine(Protocol):
    """Codes in the form in which they are searched. Rows are numbered as they came; results are in order of
    (distance, row)."""

    def extend(self, codes: ByteArray) -> bool:
        """Take in more codes behind the others; False where building anew is as cheap or better."""

    def nearest(self, queries: ByteArray, k: int) -> tuple[RowArray, DistanceArray]:
        """Rows and distances, shape (n_queries, k); row −1 where an approximate engine found fewer."""

    def within(self, queries: ByteArray, radius: int) -> tuple[RowArray, RowArray, DistanceArray]:
        """Limits, rows and distances of all items at most ``radius`` away. Exact for every engine."""


class Backend(Protocol):
    """Settings of an engine: a frozen dataclass."""

    name: ClassVar[str]
    exact: ClassVar[bool]  # whether the k nearest are certainly the k nearest

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """An engine that holds these codes."""


@dataclass(frozen=True)
class NumPy:
    """Exact, on all cores, with nothing to install: every code is looked at. See `hashlearn.search.scan`."""

    name: ClassVar[str] = "numpy"
    exact: ClassVar[bool] = True

    def build(self, codes: ByteArray, n_bits: int) -> Engine:
        """A `Scan` of the codes."""
        return Scan(codes, n_bits)
