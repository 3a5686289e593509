"""What the caller of `solve` gets: the `Solution`, and a `SolverProgress` on the way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.progress import Progress


class Status(StrEnum):
    """How a solve ended. None of these is an error: the best point found is always returned."""

    OPTIMAL = "optimal"  # value and bound meet: see `is_optimal`
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
    status : how the solve ended; "optimal" only if the gap is at most 1e-9, the rounding of the value included
    trace : the improvements of value and bound, in order
    method : the solver's name
    seconds : wall-clock time of the solve
    details : more results of this method, e.g. ``relaxation_value``, ``rank`` and ``relaxation_gap`` of "sdr"
    exact_bound : the bound as a fraction, if the method proved it in integers for the exact problem; else None
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
    exact_bound: Fraction | None = None

    def __repr__(self) -> str:
        return (
            f"Solution(method={self.method!r}, n={len(self.x)}, value={self.value:.10g}, bound={self.bound:.10g}, "
            f"gap={self.gap:.3g}, status={self.status.value!r}, seconds={self.seconds:.3g})"
        )


@dataclass(frozen=True)
class SolverProgress(Progress):
    """The argument of the progress callback of `solve`.

    ``done`` is the part of the time limit that is over, and ``total`` is 1. Without a limit it is the part of the
    stage's work; ``total`` is None if the method does not know how much work there is.
    """

    method: str
    seconds: float
    value: float
    bound: float


def relative_gap(value: float | Fraction, bound: float | Fraction) -> float:
    """(value − bound) / |bound|: 0 when they meet, inf when there is no bound. Fractions are not rounded."""
    if not math.isfinite(bound):
        return math.inf
    if value <= bound:
        return 0.0
    try:
        if isinstance(value, Fraction) and isinstance(bound, Fraction):
            return float((value - bound) / abs(bound))
        return (float(value) - float(bound)) / abs(float(bound))
    except (ZeroDivisionError, OverflowError):
        return math.inf


# The largest relative gap at which an answer is called optimal, and its only tolerance.
OPTIMAL_GAP = 1e-9


def is_optimal(value: float | Fraction, bound: float | Fraction) -> bool:
    """Whether a lower bound proves a value optimal. All "optimal" of the package come from here.

    ``value`` must include what rounding may have hidden, and both must be in the units in which the gap is reported.

    >>> is_optimal(-4.2, -4.2000001), is_optimal(0.0, -1e-300)
    (False, False)
    """
    return relative_gap(value, bound) <= OPTIMAL_GAP
