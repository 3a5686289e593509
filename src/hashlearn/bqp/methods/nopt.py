"""NOPT, the bit solver of two-step hashing (Lin, Shen, Suter and van den Hengel, TSH, ICCV 2013).

The signs are relaxed to the box [−1, 1]ⁿ, and bound-constrained L-BFGS minimizes xᵀAx there. Every evaluation takes one
product A @ x: O(max_iter · n · rank) for low rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import Bounds, minimize

from hashlearn.bqp.methods.spectral import sign, spectral_relaxation
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number


@dataclass(frozen=True)
class NonlinearOptimization(Solver):
    """Minimizes xᵀAx over the box [−1, 1]ⁿ by L-BFGS-B from the spectral signs, and takes signs again. No bound.

    The better of the two sign vectors is returned.

    Parameters
    ----------
    max_iter : iterations of L-BFGS-B, 30 in two-step hashing

    A start ``x0`` is not used beyond `solve`'s promise that the answer is never worse.

    Deviations
    ----------
    A is divided by mean|A x| at the start, which makes the stopping rules of L-BFGS-B independent of the scale of A.
    The rest is as published, with this consequence: the start is a vertex of the box. If no diagonal entry is positive,
    a vertex that no single flip improves is a stationary point, and L-BFGS-B stays there.

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> triangle = np.ones((3, 3)) - np.eye(3)
    >>> bqp.solve(triangle, method="nopt", random_state=0).value
    -2.0
    """

    max_iter: int = 30

    name: ClassVar[str] = "nopt"

    def __post_init__(self) -> None:
        whole_number(self.max_iter, "max_iter", least=1)

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Propose the spectral signs, then the signs of the box-constrained minimizer."""
        start = sign(spectral_relaxation(A, state, rng)[1])
        state.propose(start)
        scale = float(np.abs(A @ start).mean())
        if scale == 0.0:
            return Status.CONVERGED

        def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
            state.check_time("box-constrained L-BFGS")
            Ax = (A @ x) / scale
            return float(x @ Ax), 2.0 * Ax

        options = {"maxiter": self.max_iter}
        end = minimize(
            value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=Bounds(-1.0, 1.0), options=options
        )
        state.propose(sign(end.x))
        return Status.CONVERGED if end.success else Status.ITERATION_LIMIT
