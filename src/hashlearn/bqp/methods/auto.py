"""Local search for a good point beside the relaxation for a bound: one call, both answers, one gap.

The search runs in the calling thread and the relaxation in a thread of its own. Their kernels release the GIL, so two
cores are used; on one core they share it. Neither reads the other's points. Branch and bound after them has a budget
of nodes, not of seconds. So without a time limit the answer is the same for any number of cores.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.proof.solver import BranchAndBound
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState, status_of
from hashlearn.core.checks import positive, whole_number
from hashlearn.core.threads import one_blas_thread
from hashlearn.core.thresholds import LARGEST_PROVEN, PROVING_WORK

WAIT = 0.1  # seconds between two looks at the clock while only the relaxation is left


@dataclass(frozen=True)
class Auto(Solver):
    """Local search for the point, semidefinite relaxation for the bound, side by side. The default.

    If A is sparse, both work on the problem without its variables of few neighbors (`hashlearn.bqp.elimination`).

    With a time limit the search goes on until the limit, or until its point is proven optimal. When the relaxation of
    up to 120 variables is solved, branch and bound takes its place. Without a limit the search ends after its own
    budget of one to three seconds, and the relaxation when it is solved to ``tol``. If they leave a gap with up to 120
    variables, branch and bound then computes ``max_nodes`` nodes at most. By default they take up to about 6 seconds on
    two cores: enough for nearly all problems of 60 variables, and for many of 100.

    Parameters
    ----------
    tol : relative gap between the relaxation's value and its proven bound at which it counts as solved
    max_nodes : nodes of branch and bound without a time limit; None: 4,000 / n, which is 40 at n = 100. 0: none

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> ring = np.roll(np.eye(25), 1, axis=1)
    >>> solution = bqp.solve(ring + ring.T, "auto", random_state=0)
    >>> solution.value, solution.bound, solution.status.value
    (-46.0, -46.0, 'optimal')
    """

    tol: float = 1e-4
    max_nodes: int | None = None

    name: ClassVar[str] = "auto"
    merges = eliminates = enumerates = takes_tensors = takes_sparse_tensors = True

    def __post_init__(self) -> None:
        positive(self.tol, "tol")
        if self.max_nodes is not None:
            whole_number(self.max_nodes, "max_nodes", least=0)

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Propose the points of both, and the bound."""
        search_rng, relaxation_rng, proof_rng = rng.spawn(3)
        stop, closed = threading.Event(), threading.Event()
        provable = A.n <= LARGEST_PROVEN
        has_limit = bool(np.isfinite(state.seconds_left))

        def is_proven() -> bool:
            return search.value <= state.bound or closed.is_set()

        search = state.fork(LocalSearch.name, is_proven)
        relaxed = state.fork(SemidefiniteRelaxation.name, lambda: stop.is_set() or is_proven())
        parts = [search, relaxed]

        def relax() -> Status:
            with one_blas_thread():
                status = status_of(SemidefiniteRelaxation(tol=self.tol), A, relaxed, relaxation_rng, x0)
                if provable and has_limit and status != Status.TIME_LIMIT:
                    status = status_of(BranchAndBound(), A, relaxed, relaxation_rng, state.x)
                    if status == Status.OPTIMAL:
                        closed.set()  # the bound of real numbers never quite reaches the value
                return status

        try:
            if not A.rows.on_host:  # a device works for one of them at a time, and only "sdr" takes sparse tensors
                if A.is_low_rank:
                    status_of(LocalSearch(), A, search, search_rng, x0)
                return relax()
            with ThreadPoolExecutor(1, "hashlearn relaxation") as pool:
                relaxation = pool.submit(relax)
                try:
                    searched = status_of(LocalSearch(), A, search, search_rng, x0)
                    while wait([relaxation], WAIT).not_done:
                        state.check_time("relaxation")
                finally:
                    stop.set()
            endings = [searched, relaxation.result()]
            max_nodes = PROVING_WORK // A.n if self.max_nodes is None else self.max_nodes
            if provable and not has_limit and max_nodes and not state.is_proven:
                state.take_best(parts)  # the tree begins with a point that does not depend on who was faster
                parts.append(state.fork(BranchAndBound.name, lambda: False))
                endings.append(status_of(BranchAndBound(max_nodes), A, parts[-1], proof_rng, state.x))
            return Status.TIME_LIMIT if Status.TIME_LIMIT in endings and not is_proven() else Status.CONVERGED
        finally:
            for part in reversed(parts):
                state.details.update(part.details)
            state.take_best(parts)
