"""Local search for a good point beside the relaxation for a bound: one call, both answers, one gap.

The search runs in the calling thread and the relaxation in a thread of its own. Their kernels release the GIL, so two
cores are used; on one core they share it. Neither reads the other's points, so without a time limit the answer is the
same for any number of cores.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hashlearn.bqp.branch_and_bound import BranchAndBound
from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.solution import OutOfTime, Run, Status
from hashlearn.core.checks import positive
from hashlearn.core.threads import one_blas_thread
from hashlearn.core.thresholds import PROVEN_IN_TIME

WAIT = 0.1  # seconds between two looks at the clock while only the relaxation is left


@dataclass(frozen=True)
class Auto:
    """Local search for the point, semidefinite relaxation for the bound, side by side. The default.

    If A is sparse, both work on the problem without its variables of few neighbors (`hashlearn.bqp.elimination`).

    With a time limit the search goes on until the limit, or until the bound proves its point optimal. When the
    relaxation of up to 120 variables is solved, branch and bound takes its place. Without a limit the search ends
    after its own budget of one to three seconds, and the relaxation when it is solved to ``tol``.

    Parameters
    ----------
    tol : relative gap between the relaxation's value and its proven bound at which it counts as solved

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> ring = np.roll(np.eye(25), 1, axis=1)
    >>> solution = bqp.solve(ring + ring.T, "auto", random_state=0)
    >>> solution.value, solution.bound >= -50.0
    (-46.0, True)
    """

    tol: float = 1e-4

    name: ClassVar[str] = "auto"
    eliminates: ClassVar[bool] = True  # `solve` takes variables of few neighbors from a sparse A first
    any_rows: ClassVar[bool] = True
    takes_cardinality: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.tol, "tol")

    def run(self, A: Operator, run: Run, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Offer the points of both, and the bound."""
        search_rng, relaxation_rng = rng.spawn(2)
        stop = threading.Event()

        def is_proven() -> bool:
            return search.value <= run.bound

        search = run.part(LocalSearch.name, is_proven)
        relaxed = run.part(SemidefiniteRelaxation.name, lambda: stop.is_set() or is_proven())

        def relax() -> Status:
            with one_blas_thread():
                status = _status(SemidefiniteRelaxation(tol=self.tol), A, relaxed, relaxation_rng, x0)
                provable = A.n <= PROVEN_IN_TIME and run.cardinality is None and np.isfinite(run.seconds_left)
                if provable and status != Status.TIME_LIMIT:
                    status = _status(BranchAndBound(), A, relaxed, relaxation_rng, run.x)
                return status

        try:
            if not A.tall.on_host:  # a device works for one of them at a time, and only "sdr" takes sparse tensors
                if isinstance(A, LowRank):
                    _status(LocalSearch(), A, search, search_rng, x0)
                return relax()
            with ThreadPoolExecutor(1, "hashlearn relaxation") as pool:
                relaxation = pool.submit(relax)
                try:
                    searched = _status(LocalSearch(), A, search, search_rng, x0)
                    while wait([relaxation], WAIT).not_done:
                        run.tick("relaxation")
                finally:
                    stop.set()
            return max(searched, relaxation.result(), key=lambda status: status == Status.TIME_LIMIT)
        finally:
            run.details.update(search.details | relaxed.details)
            run.settle([search, relaxed])


def _status(solver: Any, A: Operator, run: Run, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
    """How the solver ended, be it by the time limit."""
    try:
        ended: Status = solver.run(A, run, rng, x0)
    except OutOfTime:
        return Status.TIME_LIMIT
    return ended
