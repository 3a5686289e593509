"""Max-cut, QUBO and Ising problems in the words of their owners: graphs, dicts, arrays, dimod models.

`max_cut`, `qubo` and `ising` take a problem and return an answer in the same words. Behind them stands one `Problem`,
which files, the command line and `DimodSampler` share.
"""

from __future__ import annotations

from hashlearn.bqp.modeling.dimod_sampler import DimodSampler
from hashlearn.bqp.modeling.energies import ising, ising_problem, qubo, qubo_problem
from hashlearn.bqp.modeling.graphs import max_cut, max_cut_problem
from hashlearn.bqp.modeling.problem import SENSES, Problem, Sense
from hashlearn.bqp.modeling.solutions import CutSolution, IsingSolution, QuboSolution, solve_problem

__all__ = [
    "SENSES",
    "CutSolution",
    "DimodSampler",
    "IsingSolution",
    "Problem",
    "QuboSolution",
    "Sense",
    "ising",
    "ising_problem",
    "max_cut",
    "max_cut_problem",
    "qubo",
    "qubo_problem",
    "solve_problem",
]
