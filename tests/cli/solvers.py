"""Solvers that do not end as they should, for tests of what a command then does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hashlearn import bqp


@dataclass(frozen=True)
class Interrupted(bqp.Solver):
    """Finds something, then the user presses Ctrl-C."""

    name: ClassVar[str] = "interrupted"

    def solve(self, A: Any, state: Any, rng: Any, x0: Any) -> bqp.Status:
        state.propose(np.append(-1.0, np.ones(A.n - 1)))
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Endless(bqp.Solver):
    """Never ends by itself."""

    name: ClassVar[str] = "endless"

    def solve(self, A: Any, state: Any, rng: Any, x0: Any) -> bqp.Status:
        while True:
            state.check_time("waiting")
