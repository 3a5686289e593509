"""A lower bound on λ_min(A − Diag(y)) from products alone, for n too large to factor.

Lanczos from a random start misses the end of the spectrum by more than ε of its spread with probability at most
1.648 √n exp(−√ε (2k − 1)) after k steps (Kuczyński and Woźniakowski 1992, theorem 4.2). Both ends are moved out by that
ε. The bound loses ε times the spread, so a large positive eigenvalue makes it worse for no reason. A positive low-rank
part (the constant background of a neighbor graph) is therefore cut to the size of the sparse part first, which can only
lower λ_min.

A spectrum of few values (a perfect matching, a star) ends Lanczos after a few steps, too soon for that theorem. Then
the residual R = (A − Diag(y)) Q − Q T of the basis Q gives a bound. For a unit eigenvector u of eigenvalue λ,
uᵀR = (Qᵀu)ᵀ (λI − T), so some Ritz value is within ‖R‖ / |uᵀq₁| of λ. As q₁ is random, |uᵀq₁| < t has a probability of
at most t √(2n/π). If neither gives a bound, Gershgorin's circles do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg as la

from hashlearn.bqp.eigen import orthogonalize
from hashlearn.bqp.operators import LowRank, Operator, Sparse, SparsePlusLowRank
from hashlearn.core.arrays import EPS, FloatArray

STEPS = 320
STEPS_FOR_SIZE = 12  # enough for a rough norm
CUT_ROUNDING = 1e-8  # relative to the size that a low-rank part is cut to: the rounding of its new factor
FAILURE_PROBABILITY = 1e-9 / 3.0  # of each of the three statements: about either end, and about the first vector


def smallest_eigenvalue_bound(
    A: Operator, y: FloatArray, rng: np.random.Generator, tick: Callable[[], None] | None = None, steps: int = STEPS
) -> tuple[float, FloatArray]:
    """``(λ, u)``: λ ≤ λ_min(A − Diag(y)) with probability at least 1 − 1e-9 over ``rng``, and a vector u near it."""
    n = A.n
    size = float((A.magnitudes() + np.abs(y)).max()) * (1.0 + n * EPS)
    rounding = float(A.entry_error().max()) + _roundings(A) * EPS * size
    if isinstance(A, SparsePlusLowRank) and (A.low_rank.weights > 0.0).all():
        largest = max(float(_ritz(A.sparse, y, rng, STEPS_FOR_SIZE, None).values[-1]), 0.0)
        A = SparsePlusLowRank(A.sparse, _cut(A.low_rank, largest))
        rounding += CUT_ROUNDING * largest
    ritz = _ritz(A, y, rng, min(steps, n - 1), tick)
    rounding += 100.0 * len(ritz.values) * EPS * float(np.abs(ritz.values).max())
    low = max(_by_steps(ritz, n), _by_residual(ritz, A, y, size)) - rounding
    return max(low, -size - rounding), ritz.basis.T @ ritz.vectors[:, 0]


def _roundings(A: Operator) -> float:
    """A product with A is off by at most this · EPS · the largest of ``A.magnitudes()``, for a vector of norm 1."""
    if isinstance(A, SparsePlusLowRank):
        return _roundings(A.sparse) + _roundings(A.low_rank) + 1.0
    if isinstance(A, LowRank):
        return A.rows.sum_rounding / EPS + A.rank + 2.0
    return 2.0 + float(np.diff(A.matrix.indptr).max()) if isinstance(A, Sparse) else 2.0 + A.n


def _by_steps(ritz: _Ritz, n: int) -> float:
    """The bound on λ_min from the number of steps; −inf after too few."""
    root = np.log(1.648 * np.sqrt(n) / FAILURE_PROBABILITY) / (2 * len(ritz.values) - 1)
    missed = float(root * root)
    if missed >= 0.25:
        return -np.inf
    # ritz_max ≥ λ_min + (1 − ε)(λ_max − λ_min), for A and for −A: solve both for the outermost possible λ_min.
    spread = (ritz.values[-1] - ritz.values[0]) / (1.0 - 2.0 * missed)
    return float(ritz.values[0] - missed * spread)


def _by_residual(ritz: _Ritz, A: Operator, y: FloatArray, size: float) -> float:
    """The bound on λ_min from the residual of the basis; −inf if Lanczos did not end by itself."""
    if not ritz.ended:
        return -np.inf
    Q = ritz.basis.T
    R = A @ Q - y[:, None] * Q - Q @ ritz.tridiagonal
    count = R.shape[1]
    rounding = np.sqrt(count) * (_roundings(A) + 2 * count + 4) * EPS * size
    first = FAILURE_PROBABILITY / np.sqrt(2.0 * A.n / np.pi)
    return float(ritz.values[0] - (np.linalg.norm(R) + rounding) / first)


class _Ritz(NamedTuple):
    values: FloatArray  # ascending
    vectors: FloatArray  # in the basis
    basis: FloatArray  # its vectors are rows
    tridiagonal: FloatArray
    ended: bool  # before all steps were made: the basis spans an invariant subspace


def _ritz(A: Operator, y: FloatArray, rng: np.random.Generator, steps: int, tick: Callable[[], None] | None) -> _Ritz:
    """Lanczos on A − Diag(y) with full reorthogonalization."""
    n = A.n
    basis = np.empty((steps + 1, n))
    alpha, beta = np.empty(steps), np.empty(steps)
    start, ended = rng.standard_normal(n), False
    basis[0] = start / np.linalg.norm(start)
    for q in range(steps):
        if tick is not None and q % 10 == 0:
            tick()
        z = A @ basis[q] - y * basis[q]
        alpha[q] = basis[q] @ z
        orthogonalize(z, basis[: q + 1])
        beta[q] = np.linalg.norm(z)
        if beta[q] <= 1e-14 * np.abs(alpha[: q + 1]).max():
            steps, ended = q + 1, True
            break
        basis[q + 1] = z / beta[q]
    alpha, beta = alpha[:steps], beta[: steps - 1]
    values, vectors = la.eigh_tridiagonal(alpha, beta)
    tridiagonal = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    return _Ritz(values, vectors, basis[:steps], tridiagonal, ended)


def _cut(A: LowRank, size: float) -> LowRank:
    """A ⪰ 0 with its eigenvalues above ``size`` lowered to it."""
    if A.rank == 0:
        return A
    root = A.P * np.sqrt(A.weights)
    values, vectors = np.linalg.eigh(root.T @ root)
    large = values > 1e-6 * values[-1]  # leaving out the others only lowers A, and the rest is accurate
    U = root @ (vectors[:, large] / np.sqrt(values[large]))
    # Rounding of U must not raise an eigenvalue: a little less than what is allowed.
    return LowRank.unchecked(U, np.minimum(values[large], size) * (1.0 - 1e-9))
