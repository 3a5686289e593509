"""One bit's problem solved on a sample of rows: what its signs there say about all rows.

With P the rows [Z, F] and x the solver's signs on m sampled rows, t = (n/m) Pᵀx estimates Pᵀx over all n, and a row
follows the gradient that t gives it: its sign is that of −pᵀWt.
"""

from __future__ import annotations

import numpy as np

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray

SAMPLED_ROWS = 10_000


def sample_problem(sample: FloatArray, weights: FloatArray) -> bqp.LowRank:
    """A of eq. (5) on the sampled rows alone; the bit itself has weight 0."""
    kept = weights != 0.0
    return bqp.LowRank.unchecked(np.ascontiguousarray(sample[:, kept]), weights[kept])


def estimated_products(
    sample: FloatArray,
    weights: FloatArray,
    present: FloatArray,
    n: int,
    solver: str | bqp.Solver,
    rng: np.random.Generator,
    time_limit: float | None = None,
) -> FloatArray:
    """t for the signs that ``solver`` finds on the sample, from ``present`` on, seen from where those stand."""
    A = sample_problem(sample, weights)
    solution = bqp.solve(A, solver, random_state=rng, x0=present, time_limit=time_limit)
    if solution.status == bqp.Status.INTERRUPTED:
        raise KeyboardInterrupt
    x = solution.x.astype(np.float64)
    if x @ present < 0.0:
        x = -x
    return (sample.T @ x) * (n / len(sample))
