"""The registry of solvers. To add one, write its file and add one line to `METHODS`.

The semidefinite relaxation has a folder of its own, `bqp.sdr`, and so has branch and bound, `bqp.proof`. ``tabu`` and
``annealing`` hold the engines of ``local_search``.
"""

from __future__ import annotations

import dataclasses

from hashlearn.bqp.methods.augmented_lagrangian import AugmentedLagrangian
from hashlearn.bqp.methods.auto import Auto
from hashlearn.bqp.methods.exact import Exact
from hashlearn.bqp.methods.graph_cut import GraphCut
from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.methods.nopt import NonlinearOptimization
from hashlearn.bqp.methods.spectral import Spectral
from hashlearn.bqp.proof.solver import BranchAndBound
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.state import Solver
from hashlearn.core.checks import whole_number
from hashlearn.core.names import did_you_mean

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
OTHER_NAMES = {"tabu": "local_search", "annealing": "local_search"}  # of what a method does, for hints


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
    limit = whole_number(max_iter, "max_iter", least=1)
    if not dataclasses.is_dataclass(solver) or not hasattr(solver, "max_iter"):
        raise ValueError(f"method {solver.name!r} has no iterations to limit; leave max_iter out, use time_limit")
    return dataclasses.replace(solver, max_iter=limit)
