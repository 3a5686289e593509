"""The state of one solve, and what a solver is.

A solver *proposes* points and bounds and *checks the time* between steps. When the time is over, that raises
`OutOfTime`. `solve` turns that, or Ctrl-C, into a `Solution` of the best so far, so no solver handles limits itself.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hashlearn.bqp.exact_numbers import ExactForm, float_at_most
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.presolve import Step
from hashlearn.bqp.proof.check import Lattice
from hashlearn.bqp.rows import Array
from hashlearn.bqp.solution import OPTIMAL_GAP, SolverProgress, Status, TraceEntry, is_optimal
from hashlearn.core.progress import ProgressCallback
from hashlearn.core.thresholds import LARGEST_ENUMERATED

TRACE_LIMIT = 10_000
SECONDS_BETWEEN_REPORTS = 0.1


class AtMost(float):
    """A ``time_limit`` in seconds that may end a solve early and never extends it.

    Under a plain limit a search goes on until the limit. Under this one it does the work that it does without a limit.
    """


class OutOfTime(Exception):
    """Raised by `SolveState.check_time` past the time limit, or when the answer is proven; caught by `solve`."""


def lattice_of(A: Operator) -> Lattice | None:
    """The values that xᵀAx can take, for a dense or sparse A whose values are computed without rounding; else None.

    A flip of x_i changes the value by −4 x_i Σ_{j≠i} a_ij x_j. Modulo twice any common divisor of the entries, that sum
    is Σ_{j≠i} a_ij. So values differ by multiples of 4 gcd(sums of rows, 2 · entries), both without the diagonal.
    """
    if A.is_low_rank or A.rank or not A.rows.on_host or not A.is_exact():
        return None
    couplings, diagonal = A.without_diagonal()
    sums = couplings @ np.ones(A.n)
    divisor = 0
    for entries in couplings.array if A.is_dense else [couplings.sparse.data]:
        divisor = int(np.gcd.reduce(entries.astype(np.int64), initial=divisor))
        if divisor == 1:
            break
    step = 4 * int(np.gcd.reduce(sums.astype(np.int64), initial=2 * divisor))
    return Lattice(int(sums.sum() + diagonal.sum()), step) if step else None


class Solver(ABC):
    """A frozen dataclass of hyper-parameters with a method that runs it. Its first docstring line goes to the docs.

    The attributes say which steps of `solve` keep the meaning of the method, and what it can read. Where that depends
    on a parameter, a property takes the attribute's place.
    """

    name: ClassVar[str]
    merges = False  # equal rows of a low-rank A may become one
    eliminates = False  # variables of few neighbors may be taken from a sparse A
    enumerates = False  # up to 20 variables may be enumerated instead
    takes_tensors = False  # low-rank tensors of more rows than are copied to the host
    takes_sparse_tensors = False

    @abstractmethod
    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: Array | None) -> Status:
        """Propose points (and bounds) to ``state``; return how it ended. ``x0`` was proposed already."""


class SolveState:
    """The incumbent, the clock and the trace of one solve. Several threads may use it at once."""

    def __init__(
        self,
        A: Operator,
        method: str = "",
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
        started: float | None = None,
        paused: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.A = A
        self.exact: ExactForm | None = None  # A in integers
        self.steps: list[Step] = []
        self.unit, self.constant = 1.0, 0.0  # of values and bounds that the user sees: `in_user_units`
        self.method = method
        self.details: dict[str, Any] = {}
        self.trace: list[TraceEntry] = []
        self.bound = -np.inf
        self.exact_bound: Fraction | None = None
        self.x: Array | None = None  # until the first proposal
        self.value = np.inf
        self.start_value = np.inf  # that of the caller's start in the caller's problem
        self._progress = progress
        self._next_report = -np.inf
        self._started = time.perf_counter() if started is None else started
        self._deadline = np.inf if time_limit is None else self._started + time_limit
        self._is_used_up = not isinstance(time_limit, AtMost)
        self._limit = time_limit if self._is_used_up else None
        self._paused = paused  # seconds that do not count towards the limit
        self._stage = "start"
        self._lock = threading.RLock()
        self._thread = threading.get_ident()  # the only one that calls the progress callback
        self._parent: SolveState | None = None
        self._is_over: Callable[[], bool] = lambda: False

    def propose_start(self, x: Array) -> None:
        """Store the caller's start, before the problem is made smaller."""
        self.propose(x)
        self.start_value = self.details["start_value"] = self.in_user_units(self.value)

    def reduce(self, step: Step | None) -> None:
        """Go on with the problem of ``step``, and with the start in its variables. No bound is known yet."""
        if step is None:
            return
        self.steps.append(step)
        self.A, self.exact = step.problem, step.form
        self.unit *= step.unit
        self.constant = self.constant / step.unit + step.constant
        if self.x is not None:
            self.x = step.collapse(self.x)
            self.value = self.A.value(self.x)

    def fork(self, method: str, is_over: Callable[[], bool]) -> SolveState:
        """A state for one of several solvers that work side by side. What is proposed to it goes to this one too.

        Its `check_time` raises `OutOfTime` once ``is_over()`` is true.
        """
        fork = copy.copy(self)
        fork.method, fork.details, fork.trace = method, {}, []
        fork.x, fork.value, fork.bound, fork.exact_bound = None, np.inf, -np.inf, None
        fork._progress, fork._parent, fork._is_over = None, self, is_over
        return fork

    def take_best(self, forks: Iterable[SolveState]) -> None:
        """Take the best point of ``forks``, the first of equal ones. It does not depend on who was faster."""
        self.x, self.value = None, np.inf
        for fork in forks:
            if fork.x is not None and self._improves(fork.x, fork.value):
                self.x, self.value = fork.x, fork.value

    @property
    def seconds(self) -> float:
        """Wall-clock time since the start."""
        return time.perf_counter() - self._started

    def propose(self, x: Array, value: float | None = None) -> bool:
        """Store a copy of the signs x if they are better than the best so far; returns whether they are."""
        if value is None:
            value = self.A.value(x)
        with self._lock:
            if not self._improves(x, value):
                return False
            self.x, self.value = self.A.rows.copy(x), float(value)
            self._extend_trace()
            if self._parent is not None:
                self._parent.propose(x, value)
        return True

    def _improves(self, x: Array, value: float) -> bool:
        """Whether x is better than the best so far, by exact values if float64 is too coarse to tell."""
        if self.x is None or self.exact is None:
            return value < self.value
        doubt = 2.0 * (self._value_error + self.exact.rounding)
        is_clear = self.A.n > LARGEST_ENUMERATED and doubt <= 0.1 * OPTIMAL_GAP * abs(value + float(self.exact.zero))
        if is_clear or not abs(value - self.value) <= doubt:
            return value < self.value
        return self.exact.value(x) < self.exact.value(self.x)

    @cached_property
    def _value_error(self) -> float:
        return self.A.value_error()

    @cached_property
    def _lattice(self) -> Lattice | None:
        return lattice_of(self.A) if self._parent is None else self._parent._lattice

    @property
    def is_proven(self) -> bool:
        """Whether the bound proves the best point optimal for the caller's objective, whatever rounding may hide."""
        if self.x is None or not math.isfinite(self.bound):
            return False
        if self.exact is None:
            return is_optimal(self.value + self._value_error, self.bound)
        bound = Fraction(self.bound) - Fraction(self.exact.rounding)
        if self.exact_bound is not None:
            bound = max(bound, self.exact_bound)
        return is_optimal(self.exact.value(self.x) + self.exact.zero, bound + self.exact.zero)

    def propose_bound(self, bound: float | Fraction) -> bool:
        """Store a proven lower bound if it is higher than the best so far; returns whether it is.

        A fraction is a bound for ``exact``, a float one for the float64 operator A. If A holds integers, the bound is
        raised to the next value that xᵀAx can take.
        """
        if self._parent is not None:
            self._parent.propose_bound(bound)
        if isinstance(bound, Fraction):
            assert self.exact is not None
            with self._lock:
                self.exact_bound = bound if self.exact_bound is None else max(bound, self.exact_bound)
            bound = float_at_most(bound - Fraction(self.exact.rounding))
        if self._lattice is not None and math.isfinite(bound):
            bound = max(bound, float(self._lattice.ceiling(Fraction(bound))))
        with self._lock:
            if not bound > self.bound:
                return False
            self.bound = float(bound)
            self._extend_trace()
        return True

    def record(self, **values: float | None) -> None:
        """Add values of xᵀAx, or of its relaxation, to the details of the solution."""
        self.details.update(
            {name: None if value is None else self.in_user_units(value) for name, value in values.items()}
        )

    def in_user_units(self, value: float) -> float:
        """A value or bound as the user sees it: A may be a scaled or smaller form of the user's problem."""
        return self.unit * (value + self.constant)

    def check_time(self, stage: str, fraction: float | None = None) -> None:
        """Call the progress callback, ten times a second at most; raise `OutOfTime` past the time limit."""
        self._stage = stage
        (self._parent or self)._report(stage, fraction)
        if self._is_over() or self.is_late:
            raise OutOfTime

    def report_end(self) -> None:
        """Call the progress callback a last time, with the best of the whole solve."""
        self._call(self._stage, 1.0)

    def _report(self, stage: str, fraction: float | None) -> None:
        self._stage = stage
        if threading.get_ident() == self._thread and (now := time.perf_counter()) >= self._next_report:
            self._next_report = now + SECONDS_BETWEEN_REPORTS
            if self._limit is not None:
                fraction = min(max(1.0 - self.seconds_left / self._limit, 0.0), 1.0)
            self._call(stage, fraction)

    def _call(self, stage: str, fraction: float | None) -> None:
        if self._progress is not None:
            total = None if fraction is None else 1.0
            self._progress(SolverProgress(stage, fraction or 0.0, total, self.method, self.seconds, *self._best()))

    @property
    def seconds_left(self) -> float:
        """What a search may plan to use: the time until the limit; inf without one, or if it is `AtMost`."""
        return self._until_deadline() if self._is_used_up else np.inf

    @property
    def is_late(self) -> bool:
        """Whether the time limit has passed."""
        return self._until_deadline() < 0.0

    def _until_deadline(self) -> float:
        return self._deadline + self._paused() - time.perf_counter()

    def _extend_trace(self) -> None:
        if len(self.trace) < TRACE_LIMIT:
            self.trace.append(TraceEntry(self.seconds, self._stage, *self._best()))

    def _best(self) -> tuple[float, float]:
        """Value and bound as the user sees them."""
        return min(self.start_value, self.in_user_units(self.value)), self.in_user_units(self.bound)


def status_of(solver: Any, A: Operator, state: SolveState, rng: np.random.Generator, x0: Any) -> Status:
    """Run the solver; how it ended, be it by the time limit."""
    try:
        ended: Status = solver.solve(A, state, rng, x0)
    except OutOfTime:
        return Status.TIME_LIMIT
    return ended
