"""`solve`: the one door to every method. Adding a method is its file and one line in `METHODS`."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from hashlearn.bqp.augmented_lagrangian import AugmentedLagrangian
from hashlearn.bqp.exact import Exact
from hashlearn.bqp.graph_cut import GraphCut
from hashlearn.bqp.local_search import LocalSearch
from hashlearn.bqp.nopt import NonlinearOptimization
from hashlearn.bqp.operators import Operator, as_operator
from hashlearn.bqp.run import OutOfTime, Progress, Run
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.solution import Solution, Status, relative_gap
from hashlearn.bqp.spectral import Spectral
from hashlearn.bqp.threads import one_blas_thread
from hashlearn.bqp.validation import generator

# A bound this close to the value leaves no room for another answer beyond rounding.
OPTIMALITY_TOLERANCE = 1e-9


@runtime_checkable
class Solver(Protocol):
    """A frozen dataclass of hyper-parameters that can run."""

    name: ClassVar[str]

    def run(self, A: Operator, run: Run, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Offer points (and bounds) to ``run``; return how it ended."""


METHODS: dict[str, Callable[[], Solver]] = {
    "sdr": SemidefiniteRelaxation,
    "al": AugmentedLagrangian,
    "nopt": NonlinearOptimization,
    "graph_cut": GraphCut,
    "spectral": Spectral,
    "local_search": LocalSearch,
    "exact": Exact,
}


def solve(
    A: Any,
    method: str | Solver = "sdr",
    *,
    random_state: Any = None,
    time_limit: float | None = None,
    max_iter: int | None = None,
    x0: ArrayLike | None = None,
    progress: Callable[[Progress], Any] | None = None,
) -> Solution:
    """Minimise xᵀAx over x ∈ {−1, +1}ⁿ (eq. 5).

    Parameters
    ----------
    A : symmetric ndarray, scipy.sparse matrix, `LowRank`, or any `Operator`
    method : a name from `METHODS` for that solver's defaults, or a solver object for full control
    random_state : None, int or numpy Generator; the same seed gives the same answer for any thread count
    time_limit : seconds; past it the best point so far comes back with status "time_limit"
    max_iter : overrides the solver's own iteration limit
    x0 : signs to start from, where the method can use a start; the answer is never worse than x0
    progress : called with a `Progress` between steps

    Returns
    -------
    Solution
        Ctrl-C during the solve returns the best point so far, with status "interrupted".

    Examples
    --------
    The largest cut of a triangle separates one corner from the other two:

    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> triangle = np.ones((3, 3)) - np.eye(3)
    >>> solution = bqp.solve(triangle, method="sdr", random_state=0)
    >>> solution.value
    -2.0
    >>> round(solution.bound, 6)
    -3.0
    """
    operator = as_operator(A)
    solver = _configured(method, max_iter)
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
    rng = generator(random_state)
    start = None if x0 is None else operator.tall.signs(x0, operator.n)

    with one_blas_thread():
        run = Run(operator, solver.name, time_limit, progress)
        try:
            if start is not None:
                run.offer(start)
            if operator.n == 1 or operator.scale() == 0.0:  # every x is as good as any other
                status = Status.OPTIMAL
                run.offer(operator.tall.ones(operator.n))
                run.offer_bound(run.value)
            else:
                status = solver.run(operator, run, rng, start)
        except OutOfTime:
            status = Status.TIME_LIMIT
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        x = operator.tall.ones(operator.n) if run.x is None else run.x
        value = operator.value(x)
    bound = min(run.bound, value)
    gap = relative_gap(value, bound)
    if gap <= OPTIMALITY_TOLERANCE:
        status = Status.OPTIMAL
    return Solution(
        x=operator.tall.as_int8(x),
        value=value,
        bound=bound,
        gap=gap,
        status=status,
        trace=tuple(run.trace),
        method=solver.name,
        seconds=run.seconds,
        details=run.details,
    )


def _configured(method: str | Solver, max_iter: int | None) -> Solver:
    if isinstance(method, str):
        if method not in METHODS:
            near = difflib.get_close_matches(method, METHODS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}{hint}")
        solver = METHODS[method]()
    elif isinstance(method, Solver) and not isinstance(method, type):
        solver = method
    else:
        raise TypeError(f"method must be a name or a solver object such as SemidefiniteRelaxation(), got {method!r}")
    if max_iter is None:
        return solver
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ValueError(f"max_iter must be a positive integer or None, got {max_iter!r}")
    if not any(f.name == "max_iter" for f in dataclasses.fields(solver)):  # type: ignore[arg-type]
        raise ValueError(f"method {solver.name!r} has no iterations to limit; leave max_iter out, use time_limit")
    return dataclasses.replace(solver, max_iter=int(max_iter))  # type: ignore[type-var]
