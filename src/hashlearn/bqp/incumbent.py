"""The state of one solve: the best point and bound so far, the clock, and the caller's progress callback.

A solver *offers* points and bounds and *ticks* between steps. When the time is over, a tick raises `OutOfTime`. `solve`
turns that, or Ctrl-C, into a `Solution` of the best so far, so no solver handles limits itself.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from hashlearn.bqp.operators import Operator
from hashlearn.bqp.rows.interface import TallArray
from hashlearn.bqp.solution import TraceEntry
from hashlearn.core.progress import Progress, ProgressCallback

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
