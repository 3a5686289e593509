"""`solve` runs every method: presolve, the solver, and back to the caller's problem."""

from __future__ import annotations

import dataclasses
import math
import numbers
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hashlearn.bqp.elimination import eliminate
from hashlearn.bqp.exact_numbers import below, float_at_most
from hashlearn.bqp.methods import METHODS, configured
from hashlearn.bqp.methods.exact import Exact
from hashlearn.bqp.operators import Operator, as_operator
from hashlearn.bqp.presolve import fix, merge, standardize, to_host
from hashlearn.bqp.rows import Array
from hashlearn.bqp.solution import Solution, Status, is_optimal, relative_gap
from hashlearn.bqp.state import Solver, SolveState, status_of
from hashlearn.core.arrays import EPS
from hashlearn.core.checks import generator
from hashlearn.core.progress import ProgressCallback, compilation_clock, watched
from hashlearn.core.threads import one_blas_thread
from hashlearn.core.thresholds import ELIMINATION_SECONDS, ELIMINATION_SHARE, LARGEST_ENUMERATED

FAR_OFF = Fraction(1, 10**12)  # beyond this relative error a value of float64 is replaced by the exact one, rounded


def solve(
    A: Any,
    method: str | Solver = "auto",
    *,
    random_state: Any = None,
    time_limit: float | None = None,
    max_iter: int | None = None,
    x0: ArrayLike | None = None,
    fixed: Mapping[int, int] | None = None,
    progress: ProgressCallback | None = None,
    verbose: bool = False,
) -> Solution:
    """Minimize xᵀAx over x ∈ {−1, +1}ⁿ (eq. 5), with a proven lower bound.

    Parameters
    ----------
    A : symmetric ndarray, scipy.sparse matrix, `LowRank`, or any `Operator`
    method : a name from `METHODS` for that solver's defaults, or a solver object for full control
    random_state : None, int or numpy Generator; the same seed gives the same answer for any thread count
    time_limit : seconds; past it the best point so far comes back with status "time_limit". Kernels are compiled once
        on a machine, at first use, and that time does not count
    max_iter : overrides the solver's own iteration limit
    x0 : signs to start from, if the method can use a start; the answer is never worse than x0
    fixed : signs that some variables must have, such as ``{0: 1, 5: -1}``; every method takes them
    progress : called with a `SolverProgress` between steps, ten times a second at most, and once at the end
    verbose : show a progress bar on standard error

    Returns
    -------
    Solution
        With P of a `LowRank` a tensor, x is a tensor on its device ("sdr" and "local_search"; any method up to 1,000
        rows). Ctrl-C during the solve returns the best point so far, with status "interrupted".

    Examples
    --------
    The largest cut of a triangle separates one corner from the other two:

    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> triangle = np.ones((3, 3)) - np.eye(3)
    >>> solution = bqp.solve(triangle, random_state=0)
    >>> solution.value, solution.bound, solution.status.value
    (-2.0, -2.0, 'optimal')
    >>> bqp.solve(triangle, fixed={0: 1, 1: 1}).x
    array([ 1,  1, -1], dtype=int8)
    """
    started = time.perf_counter()
    operator, solver, rng = as_operator(A), configured(method, max_iter), generator(random_state)
    if time_limit is not None and (not isinstance(time_limit, numbers.Real) or not time_limit > 0):
        kind = ValueError if isinstance(time_limit, numbers.Real) else TypeError
        raise kind(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
    if fixed and not operator.rows.on_host:
        raise ValueError("fixed takes problems in NumPy arrays; copy the tensor to the host first")
    start = None if x0 is None else operator.rows.signs(x0, operator.n)
    with one_blas_thread(), watched(progress, verbose) as report, compilation_clock() as compiling:
        state = SolveState(operator, solver.name, time_limit, report, started, compiling)
        state.reduce(standardize(operator))
        try:
            _presolve(state, solver, start, fixed)
            status = _solve_rest(state, solver, rng)
            state.report_end()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if len(state.steps) > 1 + bool(fixed):
            state.details.pop("proof", None)  # it is about a smaller problem than the caller's
        solution = _postsolve(state, start, status)
    return dataclasses.replace(solution, x=operator.rows.as_int8(solution.x))


def _presolve(state: SolveState, solver: Solver, start: Array | None, fixed: Mapping[int, int] | None) -> None:
    """Take the steps that keep the meaning of the solver."""
    if start is not None:
        state.propose_start(state.steps[0].collapse(start))
    if fixed:
        state.reduce(fix(state.A, fixed, state.exact))
    if solver.merges and state.A.is_low_rank:
        for step in (merge, to_host):
            state.reduce(step(state.A))
        state.details["merged_n"] = state.A.n
    entries = state.A.sparse.nnz if state.A.is_sparse and state.A.rows.on_host else 0
    if solver.eliminates and 0.0 < ELIMINATION_SECONDS * entries < ELIMINATION_SHARE * state.seconds_left:
        n = state.A.n
        state.reduce(eliminate(state.A, state.exact))
        if state.A.n < n:
            state.details["eliminated"] = n - state.A.n


def _solve_rest(state: SolveState, solver: Solver, rng: np.random.Generator) -> Status:
    """Solve what is left, by enumeration if it is small and the solver allows that, and say how it ended."""
    A = state.A
    if not A.rows.on_host:
        _require_tensors(A, solver)
    is_constant = A.n == 1 or A.scale() == 0.0  # all signs have the same value
    if A.rows.on_host and A.n <= LARGEST_ENUMERATED and (solver.enumerates or is_constant):
        state.details["engine"] = "enumeration"
        return status_of(Exact(), A, state, rng, None)
    if is_constant:
        ones = A.rows.from_numpy(np.ones(A.n))
        state.propose(ones)
        error = A.value_error() + (0.0 if A.n == 1 else (1.0 + A.n * EPS) * A.total_magnitude())
        state.propose_bound(below(A.value(ones) - error) if error > 0.0 else A.value(ones))
        return Status.CONVERGED
    return status_of(solver, A, state, rng, state.x)


def _require_tensors(A: Operator, solver: Solver) -> None:
    if not A.is_low_rank and not solver.takes_sparse_tensors:
        raise ValueError(f"method {solver.name!r} takes no sparse tensor; use 'sdr', or a scipy.sparse matrix")
    if not solver.takes_tensors:
        able = ", ".join(repr(name) for name, kind in METHODS.items() if kind.takes_tensors)
        raise ValueError(f"method {solver.name!r} takes NumPy arrays; for this kind of rows use {able}")


def _postsolve(state: SolveState, start: Array | None, status: Status) -> Solution:
    """The answer for the caller's problem, from the point and the bound for the smaller one.

    Value and gap are computed in the units of the first step, in which nothing overflows.
    """
    first, *steps = state.steps
    problem, form = first.problem, first.form
    x = state.A.rows.from_numpy(np.ones(state.A.n)) if state.x is None else state.x
    bound, slack = state.bound, 0.0
    for step in reversed(steps):
        x, bound, slack = step.expand(x), step.bound(bound), step.unit * slack + step.slack
    # On a device every proposed value was computed in float64 already, which saves a pass over P.
    value = problem.value(x) if problem.rows.on_host or state.x is None else state.value
    x = first.expand(x)
    if start is not None and state.start_value < first.unit * value:  # merged rows may differ in signs in the start
        x, value = start, state.start_value / first.unit
    exact_bound = state.exact_bound
    if exact_bound is not None:
        assert form is not None
        assert state.exact is not None
        units = math.prod(Fraction(step.unit) for step in steps)
        exact_bound = units * (exact_bound + state.exact.zero) - form.zero
        exact_value = form.value(x)
        if abs(Fraction(value) - exact_value) > FAR_OFF * abs(exact_value):
            value = float(exact_value)
        bound = max(bound, float_at_most(exact_bound - Fraction(form.rounding)))
        optimal = is_optimal(exact_value, max(exact_bound, Fraction(min(bound, value)) - Fraction(form.rounding)))
    else:
        optimal = is_optimal(value + problem.value_error() + slack, min(bound, value))
    bound = min(bound, value)
    optimal &= is_optimal(value, bound)
    if optimal or status == Status.OPTIMAL:
        status = Status.OPTIMAL if optimal else Status.CONVERGED
    return Solution(
        x=x,
        value=first.unit * value,
        bound=first.bound(bound),
        gap=relative_gap(value, bound),
        status=status,
        trace=tuple(state.trace),
        method=state.method,
        seconds=state.seconds,
        details=state.details,
        exact_bound=None if exact_bound is None else Fraction(first.unit) * exact_bound,
    )
