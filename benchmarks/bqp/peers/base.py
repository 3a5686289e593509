"""What every peer offers: min tr(AX), diag(X) = 1, X ⪰ 0, the relaxation (10), behind one interface.

A peer is given A in low-rank form and makes of it what it needs (most need the dense matrix). It returns its
own primal value and its dual point; bound and gap are then computed for all peers by the one
`certified_bound`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp import Structured

FloatArray = NDArray[np.float64]


class GaveUp(Exception):
    """The peer did not reach the gap: why, in a few words."""


class NotInstalled(Exception):
    """The peer is not on this machine: how to get it."""


@dataclass(frozen=True)
class Answer:
    """What a peer found, and how long it took by the peer's rule of what counts."""

    value: float  # tr(AX)
    dual: FloatArray  # d, with A + Diag(d) ⪰ 0 as far as the peer's tolerance goes
    seconds: float
    peak_bytes: int | None = None  # of the peer's own process, where it has one
    note: str = ""


class Peer(ABC):
    """One solver of the relaxation."""

    name: str
    kind: str  # "interior point", "first order" or "manifold"
    package: str  # on PyPI, or Debian's where the peer is a program
    excluded: str  # what the seconds leave out

    def version(self) -> str:
        """The installed version; raises `NotInstalled` with the command that installs it."""
        try:
            return package_version(self.package)
        except PackageNotFoundError:
            raise NotInstalled(f"not installed (pip install {self.package})") from None

    @abstractmethod
    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        """Solve to the relative gap ``tol``; call ``begin`` whenever a timed run begins (the limit counts
        from there)."""


def scaled_dense(A: Structured) -> tuple[FloatArray, float]:
    """A dense and divided by its largest absolute row sum, which bounds every dual variable; and that sum."""
    dense = A.toarray()
    scale = float(np.abs(dense).sum(axis=1).max())
    dense /= scale
    return dense, scale
