"""A toy solver: random signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hashlearn.bqp.operators import Operator
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState


@dataclass(frozen=True)
class ToySolver(Solver):
    """Draws random signs. No bound."""

    n_draws: int = 8

    name: ClassVar[str] = "toy_solver"

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        for draw in range(self.n_draws):
            state.propose(np.where(rng.random(A.n) < 0.5, -1.0, 1.0))
            state.check_time("draw", (draw + 1) / self.n_draws)
        return Status.CONVERGED
