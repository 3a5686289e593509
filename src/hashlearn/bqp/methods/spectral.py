"""Spectral relaxation, eq. (19): the smallest eigenvector instead of signs, and two ways back to signs.

The cost is that of `eigen.smallest_eigenpair`: O(n · rank²) for low rank, about a hundred products
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from hashlearn.bqp.eigen import smallest_eigenpair
from hashlearn.bqp.flips import Descent
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import FloatArray

BINARIZATIONS = ("sign", "sequential")


@dataclass(frozen=True)
class Spectral(Solver):
    """Takes the signs of the smallest eigenvector, which minimizes xᵀAx over ‖x‖² = n, eq. (19). No bound.

    Parameters
    ----------
    binarization : "sign" or "sequential"
        "sign" takes sgn(x_i), with sgn(0) = +1. "sequential" decides one element after the other, each
        given those already decided and those still continuous (eqs. 20 and 21): the start of the paper's
        Algorithm 2.

    A start ``x0`` is not used beyond `solve`'s promise that the answer is never worse.

    Examples
    --------
    Two coupled pairs; the relaxation finds the signs that make every coupling negative:

    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> A = np.array([[0.0, -1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    >>> bqp.solve(A, method=Spectral(), random_state=0).value
    -6.0
    """

    binarization: Literal["sign", "sequential"] = "sign"

    name: ClassVar[str] = "spectral"

    def __post_init__(self) -> None:
        if self.binarization not in BINARIZATIONS:
            raise ValueError(f"binarization must be one of {', '.join(BINARIZATIONS)}, got {self.binarization!r}")

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Propose one point."""
        _, x = spectral_relaxation(A, state, rng)
        state.check_time("binarize", 0.9)
        state.propose(sign(x) if self.binarization == "sign" else Descent(A).binarize(x))
        return Status.CONVERGED


def spectral_relaxation(A: Operator, state: SolveState, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """λ_min(A) and the continuous solution x = √n u of eq. (19)."""
    smallest, u = smallest_eigenpair(A, rng, partial(state.check_time, "smallest eigenvector"))
    return smallest, np.sqrt(A.n) * u


def sign(x: FloatArray) -> FloatArray:
    """−1.0 where x < 0, else +1.0: sgn with sgn(0) = +1.

    >>> sign(np.array([-0.5, 0.0, 2.0]))
    array([-1.,  1.,  1.])
    """
    return np.where(x < 0.0, -1.0, 1.0)
