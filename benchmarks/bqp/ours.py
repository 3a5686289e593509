"""Our solvers under the names of the tables: a name travels to the worker, which makes the object.

``x value`` in the tables is xᵀAx of the signs found. "sdr" also reports the relaxation: its value, its
certified bound, and (value − bound)/|bound|, which is the gap that the peers are compared at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from benchmarks.bqp.instances import classes
from hashlearn import bqp

Solver = Any

# Every registered method but the two for few variables, and three variants.
OURS: dict[str, Callable[[], Solver]] = {
    **{name: solver for name, solver in bqp.METHODS.items() if name not in ("exact", "branch_and_bound")},
    "sdr without polish": lambda: bqp.SemidefiniteRelaxation(polish=0),
    "literal al": lambda: bqp.AugmentedLagrangian.literal(),
    "sequential spectral": lambda: bqp.Spectral(binarization="sequential"),
}


def make(name: str, tol: float, family: str, arguments: dict[str, Any]) -> Solver:
    """The solver, with the benchmark's tolerance and, for graph_cut, the classes as blocks where there are
    classes."""
    solver = OURS[name]()
    if name.startswith("sdr"):
        solver = dataclasses.replace(solver, tol=tol)
    if name == "graph_cut" and (labels := classes(family, arguments)) is not None:
        solver = dataclasses.replace(solver, blocks=labels)
    return solver


def record(solution: bqp.Solution) -> dict[str, Any]:
    """What the tables need of a solution, ready for JSON."""
    details = solution.details
    wanted = ("relaxation_value", "relaxation_gap", "rank")
    return {
        "x_value": solution.value,
        "bound": solution.bound,
        "status": str(solution.status),
        **{key: details[key] for key in wanted if key in details},
    }
