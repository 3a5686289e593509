"""The start of the augmented Lagrangian method: an eigenvector and dual feasible multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp.eigen import Tick, smallest_weighted_eigenpair
from hashlearn.bqp.incumbent import Run
from hashlearn.bqp.methods.spectral import sign
from hashlearn.bqp.operators import Dense, LowRank, Operator, Sparse, SparsePlusLowRank
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks
from hashlearn.linalg.gram import gram

SMALLEST_WEIGHT = 1e-3  # of a row, relative to the mean: a variable with almost no couplings has no scale of its own


@dataclass(frozen=True, eq=False)
class Start:
    """x₀ and Λ₀ of Algorithm 2, and its units. The defaults are those of the paper."""

    x: FloatArray
    multipliers: FloatArray  # of A / scale
    weights: FloatArray | float = 1.0  # of the penalty on each variable
    scale: float = 1.0  # A is divided by it
    unit: float = 1.0  # of tol


def dual_feasible_start(A: Operator, run: Run, rng: np.random.Generator) -> Start:
    """The smallest eigenpair of A x = λ Diag(d) x, with d the row weights, and Λ₀ = λ d: A − Diag(Λ₀) ⪰ 0."""
    tick = partial(run.tick, "smallest eigenvector")
    tick()
    hollow, dropped = _without_stored_diagonal(A)
    weights = _row_weights(hollow, tick)
    smallest, x = smallest_weighted_eigenpair(hollow, weights, rng, tick)
    signs = sign(x)
    scale = float(np.mean(np.abs(A @ signs - dropped * signs) / weights))
    multipliers = (smallest * weights + dropped) / (scale or 1.0)
    return Start(x, multipliers, weights, scale, unit=float(A.n))


def _without_stored_diagonal(A: Operator) -> tuple[Operator, FloatArray]:
    """A without the diagonal of its dense or sparse part, and that diagonal, which only shifts xᵀAx by a constant."""
    if isinstance(A, Dense):
        array = A.toarray()
        np.fill_diagonal(array, 0.0)
        return Dense(array), A.diagonal()
    if isinstance(A, Sparse):
        diagonal = A.diagonal()
        return Sparse.unchecked(sp.csr_array(A.matrix - sp.diags_array(diagonal, format="csr"))), diagonal
    if isinstance(A, SparsePlusLowRank):
        sparse, diagonal = _without_stored_diagonal(A.sparse)
        assert isinstance(sparse, Sparse)
        return SparsePlusLowRank(sparse, A.low_rank), diagonal
    return A, np.zeros(A.n)


def _row_weights(A: Operator, tick: Tick) -> FloatArray:
    """Row norms scaled to mean 1; all ones if they vanish or overflow."""
    norms = row_norms(A, tick)
    tick()
    mean = norms.mean()
    if not (mean > 0.0 and np.isfinite(mean)):
        return np.ones(A.n)
    norms = np.maximum(norms / mean, SMALLEST_WEIGHT)
    return norms / norms.mean()


def row_norms(A: Operator, tick: Tick | None = None) -> FloatArray:
    """‖a_i‖ for every row. The parts of a sum count as orthogonal."""
    if isinstance(A, SparsePlusLowRank):
        return np.hypot(row_norms(A.sparse), row_norms(A.low_rank, tick))
    if isinstance(A, LowRank):
        return _low_rank_norms(A.P, A.weights, tick)
    if isinstance(A, Sparse):
        return np.sqrt(A.matrix.power(2).sum(axis=1))
    assert isinstance(A, Dense)
    return np.sqrt(np.einsum("ij,ij->i", A.array, A.array))


def _low_rank_norms(P: FloatArray, weights: FloatArray, tick: Tick | None) -> FloatArray:
    """‖P W p_i‖ through PᵀP. P and W are scaled to size 1 first, so that their powers do not overflow."""
    if weights.size == 0:
        return np.zeros(len(P))
    size, weight = max(P.max(), -P.min()), np.abs(weights).max()
    W = weights / weight
    M = W[:, None] * (gram(P, tick=tick) / size / size) * W

    def squares(first: int, last: int) -> FloatArray:
        rows = P[first:last] / size
        return np.einsum("ij,ij->i", rows @ M, rows)

    norms = np.sqrt(np.maximum(np.concatenate(map_row_blocks(squares, len(P))), 0.0))
    return norms * size * size * weight
