"""`solve` runs every method. To add a method, write its file and add one line to `METHODS`."""

from __future__ import annotations

import dataclasses
import math
import numbers
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from hashlearn.bqp import merging
from hashlearn.bqp.constraints import contracted
from hashlearn.bqp.elimination import Eliminated, eliminated, repeated_exactly
from hashlearn.bqp.error_bounds import below, constant_bound, float_at_most, leveled
from hashlearn.bqp.methods.augmented_lagrangian import AugmentedLagrangian
from hashlearn.bqp.methods.auto import Auto
from hashlearn.bqp.methods.exact import Exact, enumerate_signs
from hashlearn.bqp.methods.graph_cut import GraphCut
from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.methods.nopt import NonlinearOptimization
from hashlearn.bqp.methods.spectral import Spectral
from hashlearn.bqp.operators import Operator, Structured, as_operator
from hashlearn.bqp.proof.solver import BranchAndBound
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.solution import Run, Solution, Status, is_optimal, relative_gap, status_of
from hashlearn.core.checks import generator
from hashlearn.core.compilation import compilation_clock
from hashlearn.core.names import did_you_mean
from hashlearn.core.progress import ProgressCallback
from hashlearn.core.progress_bar import watched
from hashlearn.core.threads import one_blas_thread
from hashlearn.core.thresholds import (
    ELIMINATION_SECONDS,
    ELIMINATION_SHARE,
    EXACTLY_ELIMINATED_ENTRIES,
    LARGEST_ENUMERATED,
    LARGEST_TREE,
)


@runtime_checkable
class Solver(Protocol):
    """A frozen dataclass of hyper-parameters with a method that runs it. Its first docstring line goes to the docs."""

    name: ClassVar[str]

    def run(self, A: Operator, run: Run, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Offer points (and bounds) to ``run``; return how it ended."""


METHODS: dict[str, type[Solver]] = {
    "auto": Auto,
    "sdr": SemidefiniteRelaxation,
    "al": AugmentedLagrangian,
    "nopt": NonlinearOptimization,
    "graph_cut": GraphCut,
    "spectral": Spectral,
    "local_search": LocalSearch,
    "exact": Exact,
    "branch_and_bound": BranchAndBound,
}
FAR_OFF = Fraction(1, 10**12)  # beyond this relative error a value of float64 is replaced by the exact one, rounded
OTHER_NAMES = {"tabu": "local_search", "annealing": "local_search"}  # of what a method does, for hints


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
    operator = as_operator(A)
    solver = configured(method, max_iter)
    if time_limit is not None and (not isinstance(time_limit, numbers.Real) or not time_limit > 0):
        kind = ValueError if isinstance(time_limit, numbers.Real) else TypeError
        raise kind(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
    rng = generator(random_state)
    if not operator.backend.on_host:
        if fixed:
            raise ValueError("fixed takes problems in NumPy arrays; copy the tensor to the host first")
        if operator.n <= merging.HOST_ROWS and operator.is_low_rank:
            return _solved_on_host(operator, solver, rng, time_limit, x0, progress, verbose)
        if not operator.is_low_rank and not isinstance(solver, Auto | SemidefiniteRelaxation):
            raise ValueError(f"method {solver.name!r} takes no sparse tensor; use 'sdr', or a scipy.sparse matrix")
        if not getattr(solver, "any_rows", False):
            able = ", ".join(repr(name) for name, made in METHODS.items() if getattr(made, "any_rows", False))
            raise ValueError(f"method {solver.name!r} takes NumPy arrays; for this kind of rows use {able}")
    start = None if x0 is None else operator.backend.signs(x0, operator.n)

    with one_blas_thread(), watched(progress, verbose) as report, compilation_clock() as compiling:
        form = operator.exact_form() if operator.n <= LARGEST_TREE else None
        operator, unit, size = leveled(operator)
        if form is not None and unit != 1.0:
            form = form.scaled(1 - math.frexp(unit)[1])
        inner = contracted(operator, fixed) if fixed else None
        problem = operator
        if inner is not None:
            problem, size = inner.operator, inner.operator.scale()
        run = Run(problem, solver.name, time_limit, report, unit, started, compiling)
        run.exact = form if form is None or inner is None else inner.exact(form)
        smaller = _without_few_neighbors(problem, solver, run)
        if smaller is not None:
            run.restate(smaller.operator, smaller.unit, smaller.constant, smaller.exact and smaller.exact.form)
            run.details["eliminated"] = problem.n - smaller.operator.n
        steps = [step for step in (inner, smaller) if step is not None]
        try:
            if start is not None:
                given = start
                for step in steps:
                    start = step.collapse(start)
                run.offer(start)
                # An elimination sets the variables that are gone to their best, so its value may be better than x0's.
                run.details["start_value"] = unit * (run.value if smaller is None else operator.value(given))
            if run.exact is not None and (run.A.n == 1 or (size == 0.0 and run.A.n <= LARGEST_ENUMERATED)):
                status = Status.CONVERGED
                best, least = enumerate_signs(run.A, exact=run.exact)
                run.offer(best)
                run.offer_bound(least)
            elif run.A.n == 1 or size == 0.0:  # all x have the same value
                status = Status.CONVERGED
                run.offer(run.A.backend.ones(run.A.n))
                run.offer_bound(constant_bound(run.A))
            else:
                status = status_of(solver, run.A, run, rng, start)
            run.report_end()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        x = run.A.backend.ones(run.A.n) if run.x is None else run.x
        for step in reversed(steps):
            x = step.expand(x)
        # On a device every offered value was computed in float64 already, which saves a pass over P.
        value = operator.value(x) if operator.backend.on_host or run.x is None else run.value
    proven, slack = run.bound, sum(step.slack for step in steps)
    if smaller is not None:
        proven = smaller.unit * (proven + smaller.constant)
        run.details.pop("proof", None)  # it is about the smaller problem
    bound = min(proven if slack == 0.0 else below(proven - slack), value)
    exact_bound = run.exact_bound
    if exact_bound is not None and form is not None:
        if smaller is not None:
            assert smaller.exact is not None
            exact_bound = Fraction(smaller.unit) * exact_bound + smaller.exact.constant
        exact_value = form.value(x)
        if abs(Fraction(value) - exact_value) > FAR_OFF * abs(exact_value):
            value = float(exact_value)
        bound = min(max(bound, float_at_most(exact_bound - Fraction(form.rounding))), value)
        optimal = is_optimal(exact_value, max(exact_bound, Fraction(bound) - Fraction(form.rounding)))
    else:
        optimal = is_optimal(value + operator.value_error() + slack, bound)
    optimal = optimal and is_optimal(value, bound)
    if optimal or status == Status.OPTIMAL:
        status = Status.OPTIMAL if optimal else Status.CONVERGED
    return Solution(
        x=operator.backend.as_int8(x),
        value=unit * value,
        bound=unit * bound if unit * bound / unit == bound else below(unit * bound),
        gap=relative_gap(value, bound),
        status=status,
        trace=tuple(run.trace),
        method=solver.name,
        seconds=run.seconds,
        details=run.details,
        exact_bound=None if exact_bound is None else Fraction(unit) * exact_bound,
    )


def _without_few_neighbors(A: Operator, solver: Solver, run: Run) -> Eliminated | None:
    """A without its variables of few neighbors, for solvers that search, if that leaves them enough of their time."""
    if not getattr(solver, "eliminates", False) or not (A.is_sparse and A.backend.on_host):
        return None
    if ELIMINATION_SECONDS * A.sparse.nnz >= ELIMINATION_SHARE * run.seconds_left:
        return None
    found = eliminated(A)
    if found is not None and run.exact is not None and A.sparse.nnz <= EXACTLY_ELIMINATED_ENTRIES:
        found = dataclasses.replace(found, exact=repeated_exactly(found, run.exact))
    return found


def _solved_on_host(
    operator: Structured,
    solver: Solver,
    rng: np.random.Generator,
    time_limit: float | None,
    x0: Any,
    progress: ProgressCallback | None,
    verbose: bool,
) -> Solution:
    """Solve a small problem on a device as a NumPy array; the signs come back as a tensor on the device."""
    rows = operator.rows
    start = None if x0 is None else rows.to_numpy(rows.signs(x0, operator.n))
    host = Structured.unchecked(P=rows.to_host(), weights=operator.weights)
    options: dict[str, Any] = {"time_limit": time_limit, "progress": progress, "verbose": verbose}
    solution = solve(host, solver, random_state=rng, x0=start, **options)
    return dataclasses.replace(solution, x=rows.as_int8(rows.from_numpy(solution.x.astype(np.float64))))


def configured(method: str | Solver, max_iter: int | None = None, argument: str = "method") -> Solver:
    """The solver of a name, or the given one, with ``max_iter``; ``argument`` names it in errors."""
    if isinstance(method, str):
        if method not in METHODS:
            meant = OTHER_NAMES.get(method)
            hint = f"; did you mean {meant!r}?" if meant else did_you_mean(method, METHODS)
            raise ValueError(f"{argument} must be one of {', '.join(METHODS)}, got {method!r}{hint}")
        solver = METHODS[method]()
    elif isinstance(method, Solver) and not isinstance(method, type):
        solver = method
    else:
        raise TypeError(
            f"{argument} must be a name or a solver object such as SemidefiniteRelaxation(), got {method!r}"
        )
    if max_iter is None:
        return solver
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ValueError(f"max_iter must be a positive integer or None, got {max_iter!r}")
    if not any(f.name == "max_iter" for f in dataclasses.fields(solver)):  # type: ignore[arg-type]
        raise ValueError(f"method {solver.name!r} has no iterations to limit; leave max_iter out, use time_limit")
    return dataclasses.replace(solver, max_iter=int(max_iter))  # type: ignore[type-var]
