"""`Solution`, the result of every solver, however the solve ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


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
