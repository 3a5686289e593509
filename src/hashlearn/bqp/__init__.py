"""Binary quadratic problems: min xᵀAx over x ∈ {−1, +1}ⁿ, eq. (5), with proven bounds.

The package knows nothing about hashing and imports only `core` and `linalg`. It solves max-cut, QUBO and Ising problems
as well as one bit of a code. Start with `solve`. With a `LowRank` A everything is linear in n.
"""

from __future__ import annotations

from hashlearn.bqp.eigen import shift_to_negative_semidefinite
from hashlearn.bqp.methods import METHODS
from hashlearn.bqp.methods.augmented_lagrangian import AugmentedLagrangian
from hashlearn.bqp.methods.auto import Auto
from hashlearn.bqp.methods.exact import Exact
from hashlearn.bqp.methods.graph_cut import GraphCut
from hashlearn.bqp.methods.local_search import LocalSearch
from hashlearn.bqp.methods.nopt import NonlinearOptimization
from hashlearn.bqp.methods.spectral import Spectral
from hashlearn.bqp.modeling.answers import Answer, DimodSampler, ising, max_cut, qubo, solve_problem
from hashlearn.bqp.modeling.problem import Problem
from hashlearn.bqp.modeling.problem_files import ProblemFileError, read_problem, write_problem
from hashlearn.bqp.modeling.problem_readers import ising_problem, max_cut_problem, qubo_problem
from hashlearn.bqp.operators import (
    Dense,
    LowRank,
    Operator,
    Sparse,
    Structured,
    as_operator,
    diagonal_operator,
)
from hashlearn.bqp.proof.solver import BranchAndBound
from hashlearn.bqp.proof.tree import Proof
from hashlearn.bqp.sdr import SemidefiniteRelaxation
from hashlearn.bqp.sdr.rounding import expected_rounding_value
from hashlearn.bqp.solution import Solution, SolverProgress, Status, TraceEntry
from hashlearn.bqp.solve import solve
from hashlearn.bqp.state import Solver

__all__ = [
    "METHODS",
    "Answer",
    "AugmentedLagrangian",
    "Auto",
    "BranchAndBound",
    "Dense",
    "DimodSampler",
    "Exact",
    "GraphCut",
    "LocalSearch",
    "LowRank",
    "NonlinearOptimization",
    "Operator",
    "Problem",
    "ProblemFileError",
    "Proof",
    "SemidefiniteRelaxation",
    "Solution",
    "Solver",
    "SolverProgress",
    "Sparse",
    "Spectral",
    "Status",
    "Structured",
    "TraceEntry",
    "as_operator",
    "diagonal_operator",
    "expected_rounding_value",
    "ising",
    "ising_problem",
    "max_cut",
    "max_cut_problem",
    "qubo",
    "qubo_problem",
    "read_problem",
    "shift_to_negative_semidefinite",
    "solve",
    "solve_problem",
    "write_problem",
]

# Every solver in METHODS is public, also one that the list above does not name.
globals().update({solver.__name__: solver for solver in METHODS.values()})
__all__ += [solver.__name__ for solver in METHODS.values() if solver.__name__ not in __all__]
