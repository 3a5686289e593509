"""`Run`, the state of one solve, and `Solution`, the result of every solver, however the solve ended.

A solver *offers* points and bounds and *ticks* between steps. When the time is over, a tick raises `OutOfTime`. `solve`
turns that, or Ctrl-C, into a `Solution` of the best so far, so no solver handles limits itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.operators import Operator
from hashlearn.bqp.rows import TallArray
from hashlearn.core.progress import Progress, ProgressCallback


class Status(StrEnum):
    """How a solve ended. None of these is an error: the best point found is always returned."""

    OPTIMAL = "optimal"  # value and bound meet
    CONVERGED = "converged"  # the method ended by its own rule
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"  # Ctrl-C


class TraceEntry(NamedTuple):
    """One improvement: when it came, in which stage, and value and bound after it."""

    seconds: float
    stage: str
    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class Solution:
    """The best signs found for min xᵀAx, and a proven lower bound if the method gives one.

    Attributes
    ----------
    x : int8 array of −1 and +1, shape (n,)
    value : xᵀAx, recomputed from x at the end
    bound : no x has a smaller value (−inf if the method proves nothing)
    gap : (value − bound) / |bound|, at least 0; inf without a bound
    status : how the solve ended
    trace : the improvements of value and bound, in order
    method : the solver's name
    seconds : wall-clock time of the solve
    details : more results of this method, e.g. ``relaxation_value``, ``rank`` and ``relaxation_gap`` of "sdr"
    """

    x: NDArray[np.int8]
    value: float
    bound: float
    gap: float
    status: Status
    trace: tuple[TraceEntry, ...]
    method: str
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"Solution(method={self.method!r}, n={len(self.x)}, value={self.value:.10g}, bound={self.bound:.10g}, "
            f"gap={self.gap:.3g}, status={self.status.value!r}, seconds={self.seconds:.3g})"
        )


def relative_gap(value: float, bound: float) -> float:
    """(value − bound) / |bound|: 0 when they meet, inf when there is no bound."""
    if np.isneginf(bound):
        return float("inf")
    difference = max(float(value) - float(bound), 0.0)
    if difference == 0.0:
        return 0.0
    return difference / abs(float(bound)) if bound != 0.0 else float("inf")


TRACE_LIMIT = 10_000


class OutOfTime(Exception):
    """Raised by `Run.tick` past the time limit; caught by `solve`."""


@dataclass(frozen=True)
class SolverProgress(Progress):
    """The argument of the progress callback of `solve`; ``total`` is None if the method does not know it."""

    method: str
    seconds: float
    value: float
    bound: float


class Run:
    """The incumbent, the clock and the trace of one solve."""

    def __init__(
        self,
        A: Operator,
        method: str = "",
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
        unit: float = 1.0,
    ) -> None:
        self.A = A
        self.unit = unit  # values and bounds are multiplied by it before the user sees them
        self.method = method
        self.details: dict[str, Any] = {}
        self.trace: list[TraceEntry] = []
        self._progress = progress
        self._started = time.perf_counter()
        self._deadline = None if time_limit is None else self._started + time_limit
        self._stage = "start"
        self.bound = -np.inf
        self.x: TallArray | None = None  # until the first offer
        self.value = np.inf

    @property
    def seconds(self) -> float:
        """Wall-clock time since the start."""
        return time.perf_counter() - self._started

    def offer(self, x: TallArray, value: float | None = None) -> bool:
        """Store a copy of the signs x if they are better than the best so far; returns whether they are."""
        if value is None:
            value = self.A.value(x)
        if not value < self.value:
            return False
        self.x, self.value = self.A.tall.copy(x), float(value)
        self._record()
        return True

    def offer_bound(self, bound: float) -> bool:
        """Store a proven lower bound if it is higher than the best so far; returns whether it is."""
        if not bound > self.bound:
            return False
        self.bound = float(bound)
        self._record()
        return True

    def tell(self, **values: float | None) -> None:
        """Add values of xᵀAx, or of its relaxation, to the details of the solution."""
        self.details.update({name: None if value is None else self.unit * value for name, value in values.items()})

    def tick(self, stage: str, fraction: float | None = None) -> None:
        """Call the progress callback; raise `OutOfTime` past the time limit."""
        self._stage = stage
        if self._progress is not None:
            value, bound = self.unit * self.value, self.unit * self.bound
            total = None if fraction is None else 1.0
            self._progress(SolverProgress(stage, fraction or 0.0, total, self.method, self.seconds, value, bound))
        if self._deadline is not None and time.perf_counter() > self._deadline:
            raise OutOfTime

    @property
    def seconds_left(self) -> float:
        """Until the time limit; inf without one."""
        return np.inf if self._deadline is None else self._deadline - time.perf_counter()

    def _record(self) -> None:
        if len(self.trace) < TRACE_LIMIT:
            self.trace.append(TraceEntry(self.seconds, self._stage, self.unit * self.value, self.unit * self.bound))
