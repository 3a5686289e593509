"""The augmented Lagrangian method, Algorithm 2: L-BFGS on eq. (17) with a growing penalty on Φ(x) = x² − 1.

Every evaluation takes one product A @ x, O(n · rank) for low rank and O(nnz) for sparse; there are about two hundred.
Memory holds A, a few vectors and, during the search for the start, a rescaled copy of A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from hashlearn.bqp.eigen import smallest_weighted_eigenpair
from hashlearn.bqp.flips import Descent
from hashlearn.bqp.methods.spectral import sign, spectral_relaxation
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive, whole_number

# Passes of 1-flip descent: enough for nearly all of its gain, and the cost stays linear in n.
PASSES_PER_ITERATE = 10
FINAL_PASSES = 100
LARGEST_PENALTY = 1e15  # beyond this, rounding leaves only Φ(x)² of eq. (17)
SMALLEST_WEIGHT = 1e-3  # of a row, relative to the mean: a variable with almost no couplings has no scale of its own


@dataclass(frozen=True)
class AugmentedLagrangian(Solver):
    """Minimizes xᵀAx − Λᵀ Φ(x) + μ/2 ‖Φ(x)‖², eq. (17), for updated Λ and growing μ, and takes signs. No bound.

    The default is the paper's method made to descend. ``AugmentedLagrangian.literal()`` is Algorithm 2 as
    printed, and **that one returns its own initialization**: Λ₀ = (A x₀)./x₀, eq. (22), is chosen so that
    the gradient (18) is zero at x₀. L-BFGS then has nothing to do, Λ stays as it is because Φ(x₀) = 0, and
    the loop ends where it began. Its answer is the sequentially binarized eigenvector of eqs. (19) to (21),
    exactly. On the max-cut graph G1 (best known cut 11,624) that is 11,416; the default reaches 11,565 to
    11,569.

    Parameters
    ----------
    max_iter : T, outer iterations t = 0 … T
    penalty : μ₀, in units of mean|A x₀|
    penalty_growth : α, by which μ is multiplied after each outer iteration
    tol : ε; ends when xᵀAx changes by less than tol · n · mean|A x₀| (``literal``: by less than tol)
    inner_iter : t₁, the most L-BFGS iterations of one outer iteration
    as_printed : Algorithm 2 with the initialization of the paper and nothing else; see ``literal``

    The answer is never worse than the signs of its start, nor than ``x0``, which is 1-flipped too.

    Deviations
    ----------
    What each is for; what they gain together, over ``literal``, NOPT and others, is in docs/benchmarks.md.

    - Λ₀ is dual feasible, A − Diag(Λ₀) ⪰ 0 with Λ₀ = λ_min · d, instead of eq. (22): the start is no longer stationary.
    - d and the penalty follow the norms of the rows of A, and λ_min and x₀ are those of A x = λ Diag(d) x: a variable
      with small couplings is not held by a large multiplier, and merged rows count by their number.
    - A is divided by mean|A x₀| (over d, without the stored diagonal), so that μ₀ means the same for every A.
    - The start is the eigenvector before it is binarized, so that Φ(x₀) ≠ 0.
    - The signs of every iterate are 1-flipped and the best are returned, instead of the signs of the last iterate.
    - α = 3 instead of 10; T = 20 and ε is relative, so that ε and not T ends the loop, after about eight iterations.
    - A diagonal that a dense or sparse part stores is left out of the eigenproblem, being a constant of xᵀAx.
    - Equal rows of a low-rank A are merged first, which is exact (see `presolve`).

    The choices were made looking at the max-cut graphs G1, G14, G22, G43 and generated problems.

    Examples
    --------
    A cycle of five with weight 1: four of its five edges can be cut, so xᵀAx = 10 − 4 · 4 = −6.

    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> cycle = np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), -1, axis=1)
    >>> bqp.solve(cycle, method="al", random_state=0).value
    -6.0
    >>> bqp.solve(cycle, method=AugmentedLagrangian.literal(), random_state=0).method
    'al'
    """

    max_iter: int = 20
    penalty: float = 0.1
    penalty_growth: float = 3.0
    tol: float = 1e-4
    inner_iter: int = 50
    as_printed: bool = False

    name: ClassVar[str] = "al"

    @property
    def merges(self) -> bool:  # type: ignore[override]
        """The paper's eigenvector weighs variables, so its method sees all rows."""
        return not self.as_printed

    def __post_init__(self) -> None:
        whole_number(self.max_iter, "max_iter", least=1)
        whole_number(self.inner_iter, "inner_iter", least=1)
        positive(self.penalty, "penalty")
        positive(self.tol, "tol", or_zero=True)
        positive(self.penalty_growth, "penalty_growth")
        if self.penalty_growth < 1.0:
            raise ValueError(f"penalty_growth must be at least 1, got {self.penalty_growth!r}")
        if not isinstance(self.as_printed, bool):
            raise ValueError(f"as_printed must be True or False, got {self.as_printed!r}")

    @classmethod
    def literal(cls) -> AugmentedLagrangian:
        """The paper's: T = 10, μ₀ = 0.1, α = 10, ε = 1e-6, x₀ of eq. (21), Λ₀ of eq. (22). Returns x₀."""
        return cls(max_iter=10, penalty=0.1, penalty_growth=10.0, tol=1e-6, inner_iter=50, as_printed=True)

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Propose the signs of the iterates."""
        converged = self._solve_literal(A, state, rng) if self.as_printed else self._solve_descent(A, state, rng, x0)
        return Status.CONVERGED if converged else Status.ITERATION_LIMIT

    def _solve_literal(self, A: Operator, state: SolveState, rng: np.random.Generator) -> bool:
        iterates = [Descent(A).binarize(spectral_relaxation(A, state, rng)[1])]  # eqs. (19) to (21)
        start = Start(iterates[0], (A @ iterates[0]) / iterates[0])  # eq. (22)
        converged = self._algorithm_2(A, start, state, iterates.append)
        state.propose(sign(iterates[-1]))
        return converged

    def _solve_descent(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> bool:
        descent = Descent(A)

        def propose(x: FloatArray, passes: int = PASSES_PER_ITERATE) -> None:
            state.propose(sign(x))
            state.propose(descent.descend(sign(x), passes, lambda: state.check_time("1-flip")))

        if x0 is not None:
            propose(x0, FINAL_PASSES)
        start = dual_feasible_start(A, state, rng)
        propose(start.x)
        # Overflow or a zero matrix leave no unit to measure in, and 1-flip has done what can be done.
        converged = not 0.0 < start.scale < np.inf or self._algorithm_2(A, start, state, propose)
        if state.x is not None:
            propose(state.x, FINAL_PASSES)
        return converged

    def _algorithm_2(self, A: Operator, start: Start, state: SolveState, each: Callable[[FloatArray], Any]) -> bool:
        """Algorithm 2 on A / scale; calls ``each`` with every x_t. Returns whether line 3 ended it, not line 1."""
        x, multipliers, mu = start.x, start.multipliers, self.penalty
        value = A.value(x) / start.scale

        def objective(x: FloatArray, *arguments: Any) -> tuple[float, FloatArray]:
            state.check_time("augmented Lagrangian", t / (self.max_iter + 1))
            return lagrangian(x, A, *arguments)

        options = {"maxiter": self.inner_iter, "ftol": 1e-9, "gtol": 1e-5}
        for t in range(self.max_iter + 1):
            penalties = mu * start.weights
            arguments = multipliers, penalties, start.scale
            x = minimize(objective, x, arguments, jac=True, method="L-BFGS-B", options=options).x  # line 2
            each(x)
            state.details["outer_iterations"] = t + 1
            previous, value = value, A.value(x) / start.scale
            if t > 1 and abs(value - previous) < self.tol * start.unit:  # line 3
                return True
            multipliers = multipliers - penalties * (x * x - 1.0)  # line 6
            mu = min(self.penalty_growth * mu, LARGEST_PENALTY)  # line 7
        return False


def lagrangian(
    x: FloatArray, A: Operator, multipliers: FloatArray, mu: FloatArray | float, scale: float = 1.0
) -> tuple[float, FloatArray]:
    """Value and gradient, eqs. (17) and (18), of A / scale; ``mu`` may hold a penalty for each variable.

    >>> from hashlearn.bqp import as_operator
    >>> lagrangian(np.array([2.0]), as_operator([[1.0]]), multipliers=np.array([0.5]), mu=0.1)
    (2.95, array([3.2]))
    """
    Ax = (A @ x) / scale
    violation = x * x - 1.0
    value = x @ Ax - multipliers @ violation + 0.5 * np.sum(mu * violation * violation)
    return float(value), 2.0 * (Ax + (mu * violation - multipliers) * x)


@dataclass(frozen=True, eq=False)
class Start:
    """x₀ and Λ₀ of Algorithm 2, and its units. The defaults are those of the paper."""

    x: FloatArray
    multipliers: FloatArray  # of A / scale
    weights: FloatArray | float = 1.0  # of the penalty on each variable
    scale: float = 1.0  # A is divided by it
    unit: float = 1.0  # of tol


def dual_feasible_start(A: Operator, state: SolveState, rng: np.random.Generator) -> Start:
    """The smallest eigenpair of A x = λ Diag(d) x, with d the norms of rows, and Λ₀ = λ d: A − Diag(Λ₀) ⪰ 0.

    The norms are scaled to mean 1. Ones stand for norms that vanish or overflow.
    """
    check_time = partial(state.check_time, "smallest eigenvector")
    check_time()
    hollow, dropped = A.without_diagonal()
    norms = hollow.row_norms(check_time)
    check_time()
    mean = norms.mean()
    weights = np.ones(A.n)
    if 0.0 < mean < np.inf:
        weights = np.maximum(norms / mean, SMALLEST_WEIGHT)
        weights /= weights.mean()
    smallest, x = smallest_weighted_eigenpair(hollow, weights, rng, check_time)
    signs = sign(x)
    scale = float(np.mean(np.abs(A @ signs - dropped * signs) / weights))
    multipliers = (smallest * weights + dropped) / (scale or 1.0)
    return Start(x, multipliers, weights, scale, unit=float(A.n))
