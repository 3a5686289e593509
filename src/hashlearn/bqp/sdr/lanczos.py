"""A lower bound on λ_min(A − Diag(y)) from products alone, for n too large to factor.

Lanczos from a random start misses the end of the spectrum by more than ε of its spread with probability at most
1.648 √n exp(−√ε (2k − 1)) after k steps (Kuczyński and Woźniakowski 1992, theorem 4.2); both ends are moved out by that
ε. What is lost is ε times the spread, so a large positive eigenvalue costs accuracy where it does not matter: a
positive low-rank part (the constant background of a neighbour graph) is cut to the size of the sparse part first, which
can only lower λ_min.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg as la

from hashlearn.bqp.operators import FloatArray, LowRank, Operator, SparsePlusLowRank

STEPS = 300
STEPS_FOR_SIZE = 12  # enough for a rough norm
FAILURE_PROBABILITY = 1e-9
EPS = float(np.finfo(np.float64).eps)


def smallest_eigenvalue_bound(
    A: Operator, y: FloatArray, rng: np.random.Generator, tick: Callable[[], None] | None = None, steps: int = STEPS
) -> tuple[float, FloatArray]:
    """``(λ, u)``: λ ≤ λ_min(A − Diag(y)) with probability at least 1 − 1e-9 over ``rng``, and a vector u near it."""
    n = A.n
    if isinstance(A, SparsePlusLowRank) and (A.low_rank.weights > 0.0).all():
        size = _ritz(A.sparse, y, rng, STEPS_FOR_SIZE, None).values[-1]
        A = SparsePlusLowRank(A.sparse, _cut(A.low_rank, max(float(size), 0.0)))
    ritz = _ritz(A, y, rng, min(steps, n - 1), tick)
    done = len(ritz.values)
    root = np.log(1.648 * np.sqrt(n) / FAILURE_PROBABILITY) / (2 * done - 1)
    missed = min(root * root, 1.0 - 1e-9)
    # ritz_max ≥ λ_min + (1 − ε)(λ_max − λ_min), for A and for −A: solve both for the outermost possible λ_min.
    spread = (ritz.values[-1] - ritz.values[0]) / (1.0 - 2.0 * missed) if missed < 0.25 else np.inf
    low = ritz.values[0] - missed * spread - 100.0 * done * EPS * (np.abs(ritz.values).max())
    return float(low), ritz.basis.T @ ritz.vectors[:, 0]


class _Ritz(NamedTuple):
    values: FloatArray  # ascending
    vectors: FloatArray  # in the basis
    basis: FloatArray  # its vectors are rows


def _ritz(A: Operator, y: FloatArray, rng: np.random.Generator, steps: int, tick: Callable[[], None] | None) -> _Ritz:
    """Lanczos on A − Diag(y) with full reorthogonalisation."""
    n = A.n
    basis = np.empty((steps + 1, n))
    alpha, beta = np.empty(steps), np.empty(steps)
    start = rng.standard_normal(n)
    basis[0] = start / np.linalg.norm(start)
    for q in range(steps):
        if tick is not None and q % 10 == 0:
            tick()
        z = A @ basis[q] - y * basis[q]
        alpha[q] = basis[q] @ z
        for _ in range(2):  # orthogonal to all that went before, twice
            z -= basis[: q + 1].T @ (basis[: q + 1] @ z)
        beta[q] = np.linalg.norm(z)
        if beta[q] <= 1e-14 * np.abs(alpha[: q + 1]).max():
            steps = q + 1
            break
        basis[q + 1] = z / beta[q]
    values, vectors = la.eigh_tridiagonal(alpha[:steps], beta[: steps - 1])
    return _Ritz(values, vectors, basis[:steps])


def _cut(A: LowRank, size: float) -> LowRank:
    """A ⪰ 0 with its eigenvalues above ``size`` lowered to it."""
    if A.rank == 0:
        return A
    root = A.P * np.sqrt(A.weights)
    values, vectors = np.linalg.eigh(root.T @ root)
    kept = values > 1e-12 * values[-1]
    U = root @ (vectors[:, kept] / np.sqrt(values[kept]))
    # Rounding of U must not raise an eigenvalue: a little less than what is allowed.
    return LowRank.unchecked(U, np.minimum(values[kept], size) * (1.0 - 1e-9))
