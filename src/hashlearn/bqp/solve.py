"""`solve` runs every method. To add a method, write its file and add one line to `METHODS`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from hashlearn.bqp import merging
from hashlearn.bqp.branch_and_bound import BranchAndBound
from hashlearn.bqp.constraints import Cardinality, checked_cardinality, contracted
from hashlearn.bqp.elimination import Eliminated, eliminated
from hashlearn.bqp.error_bounds import below, constant_bound, leveled, value_error
from hashlearn.bqp.methods.augmented_lagrangian import AugmentedLagrangian
from hashlearn.bqp.methods.auto import Auto
from hashlearn.bqp.methods.exact import Exact
from hashlearn.bqp.methods.graph_cut import GraphCut
from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.methods.nopt import NonlinearOptimization
from hashlearn.bqp.methods.spectral import Spectral
from hashlearn.bqp.operators import LowRank, Operator, Sparse, as_operator
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.solution import Run, Solution, Status, relative_gap, status_of
from hashlearn.core.checks import generator
from hashlearn.core.names import did_you_mean
from hashlearn.core.progress import ProgressCallback
from hashlearn.core.progress_bar import compilations_told, watched
from hashlearn.core.threads import one_blas_thread
from hashlearn.core.thresholds import ELIMINATION_SECONDS, ELIMINATION_SHARE

# The status is "optimal" if bound and value are this close, relative to the bound or to a thousandth of the scale.
OPTIMALITY_TOLERANCE = 1e-9


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


def solve(
    A: Any,
    method: str | Solver = "auto",
    *,
    random_state: Any = None,
    time_limit: float | None = None,
    max_iter: int | None = None,
    x0: ArrayLike | None = None,
    fixed: Mapping[int, int] | None = None,
    cardinality: int | None = None,
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
    cardinality : the sum that all signs must have, such as 0 for two halves of equal size. "auto", "sdr",
        "local_search" and "exact" take it; the others refuse it
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
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
    if cardinality is not None and not getattr(solver, "takes_cardinality", False):
        able = ", ".join(repr(name) for name, made in METHODS.items() if getattr(made, "takes_cardinality", False))
        raise ValueError(f"method {solver.name!r} takes no cardinality; use {able}")
    rng = generator(random_state)
    if not operator.tall.on_host:
        if fixed or cardinality is not None:
            raise ValueError("fixed and cardinality take problems in NumPy arrays; copy the tensor to the host first")
        if operator.n <= merging.HOST_ROWS and isinstance(operator, LowRank):
            return _solved_on_host(operator, solver, rng, time_limit, x0, progress, verbose)
        if not isinstance(operator, LowRank) and not isinstance(solver, Auto | SemidefiniteRelaxation):
            raise ValueError(f"method {solver.name!r} takes no sparse tensor; use 'sdr', or a scipy.sparse matrix")
        if not getattr(solver, "any_rows", False):
            able = ", ".join(repr(name) for name, made in METHODS.items() if getattr(made, "any_rows", False))
            raise ValueError(f"method {solver.name!r} takes NumPy arrays; for this kind of rows use {able}")
    start = None if x0 is None else operator.tall.signs(x0, operator.n)

    with one_blas_thread(), watched(progress, verbose) as report, compilations_told(None) as compiling:
        operator, unit, size = leveled(operator)
        inner = contracted(operator, fixed) if fixed else None
        problem = operator
        if inner is not None:
            problem, size = inner.operator, inner.operator.scale()
        constraint = None if cardinality is None else checked_cardinality(cardinality, operator.n, inner)
        run = Run(problem, solver.name, time_limit, report, unit, constraint, started, compiling)
        smaller = _without_few_neighbors(problem, solver, run)
        if smaller is not None:
            run.restate(smaller.operator, smaller.unit, smaller.constant)
            run.details["eliminated"] = problem.n - smaller.operator.n
        steps = [step for step in (inner, smaller) if step is not None]
        try:
            if start is not None:
                for step in steps:
                    start = step.collapse(start)
                _require_sum(start, constraint)
                run.offer(start)
                run.tell(start_value=run.value)
            if run.A.n == 1 or size == 0.0:  # all x have the same value
                status = Status.CONVERGED
                run.offer(_some_signs(run))
                run.offer_bound(constant_bound(run.A))
            else:
                status = status_of(solver, run.A, run, rng, start)
            run.report_end()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        x = _some_signs(run) if run.x is None else run.x
        if constraint is not None:
            x = constraint.oriented(x)
            assert x is not None, f"method {solver.name!r} offered signs that break the cardinality"
        for step in reversed(steps):
            x = step.expand(x)
        # On a device every offered value was computed in float64 already, which saves a pass over P.
        value = operator.value(x) if operator.tall.on_host or run.x is None else run.value
    proven, slack = run.bound, sum(step.slack for step in steps)
    if smaller is not None:
        proven = smaller.unit * (proven + smaller.constant)
        run.details.pop("proof", None)  # it is about the smaller problem
    bound = min(proven if slack == 0.0 else below(proven - slack), value)
    if _is_proven(operator, value, bound, size, slack):
        status = Status.OPTIMAL
    elif status == Status.OPTIMAL:
        status = Status.CONVERGED
    return Solution(
        x=operator.tall.as_int8(x),
        value=unit * value,
        bound=unit * bound if unit * bound / unit == bound else below(unit * bound),
        gap=relative_gap(value, bound),
        status=status,
        trace=tuple(run.trace),
        method=solver.name,
        seconds=run.seconds,
        details=run.details,
    )


def _without_few_neighbors(A: Operator, solver: Solver, run: Run) -> Eliminated | None:
    """A without its variables of few neighbors, for solvers that search, if that leaves them enough of their time."""
    if not getattr(solver, "eliminates", False) or not isinstance(A, Sparse) or run.cardinality is not None:
        return None
    return eliminated(A) if ELIMINATION_SECONDS * A.matrix.nnz < ELIMINATION_SHARE * run.seconds_left else None


def _some_signs(run: Run) -> Any:
    """Signs that keep the constraints of ``run``."""
    return run.A.tall.ones(run.A.n) if run.cardinality is None else run.cardinality.some_signs(run.A.n)


def _require_sum(x0: Any, cardinality: Cardinality | None) -> None:
    if cardinality is not None and not cardinality.holds(x0):
        raise ValueError("x0 must have the sum that cardinality asks for")


def _is_proven(operator: Operator, value: float, bound: float, size: float, slack: float) -> bool:
    """Whether bound and value meet, even if the true value is higher by the rounding of its evaluation."""
    allowed = OPTIMALITY_TOLERANCE * max(abs(bound), 1e-3 * size)
    return value - bound <= allowed < np.inf and value + value_error(operator) + slack - bound <= allowed


def _solved_on_host(
    operator: LowRank,
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
    host = LowRank(rows.to_host(), operator.weights)
    options: dict[str, Any] = {"time_limit": time_limit, "progress": progress, "verbose": verbose}
    solution = solve(host, solver, random_state=rng, x0=start, **options)
    return dataclasses.replace(solution, x=rows.as_int8(rows.from_numpy(solution.x.astype(np.float64))))


def configured(method: str | Solver, max_iter: int | None = None, argument: str = "method") -> Solver:
    """The solver of a name, or the given one, with ``max_iter``; ``argument`` names it in errors."""
    if isinstance(method, str):
        if method not in METHODS:
            hint = did_you_mean(method, METHODS)
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
