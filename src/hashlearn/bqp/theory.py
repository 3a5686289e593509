"""The paper's results on the semidefinite relaxation as functions: Prop. 1 and eq. (13).

Solvers need none of them, except to report eq. (13). They check a solver against the theory. Memory is O(n · k) plus
one block of rows. Eq. (13) takes O(nnz · k) time for a sparse A and O(n² (k + rank)) otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hashlearn.bqp.eigen import RESIDUAL, largest_eigenvalue, smallest_eigenpair
from hashlearn.bqp.operators import Operator, as_operator, diagonal_operator
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import finite_float64, generator

ENTRIES_PER_BLOCK = 2_000_000  # of the inner products held at once
UNIT_TOLERANCE = 1e-6


def shift_to_negative_semidefinite(A: Any, random_state: Any = 0) -> tuple[Operator, float]:
    """Prop. 1: B = A − λ₁ I ⪯ 0, and λ₁, the largest eigenvalue; xᵀBx = xᵀAx − n λ₁ for all signs x.

    The λ₁ that is used and returned is larger than the computed one by 1e-7 · ‖A‖, the possible error of the iterative
    eigensolver. So B is negative semidefinite in floating point too.

    >>> B, top_eigenvalue = shift_to_negative_semidefinite([[0.0, 1.0], [1.0, 0.0]])
    >>> B.toarray().round(6), round(top_eigenvalue, 6)
    (array([[-1.,  1.],
           [ 1., -1.]]), 1.0)
    """
    A = as_operator(A)
    rng = generator(random_state)
    top = largest_eigenvalue(A, rng)
    norm = max(abs(top), abs(smallest_eigenpair(A, rng)[0]))
    top += RESIDUAL * norm
    return A + diagonal_operator(np.full(A.n, -top)), top


def expected_rounding_value(A: Any, V: ArrayLike) -> float:
    """Eq. (13): E[xᵀAx] for x = sgn(V g), g standard normal; that is (2/π) Σ_ij A_ij arcsin(v_i · v_j).

    The rows of V are the n unit vectors of the relaxation: ``lifted`` = V Vᵀ is the paper's X.

    Two orthogonal vectors round to equal or opposite signs with equal chance, so only the diagonal is left:

    >>> expected_rounding_value([[3.0, 5.0], [5.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]])
    7.0
    """
    A = as_operator(A)
    rows = finite_float64(V, "V", ndim=2)
    if len(rows) != A.n:
        raise ValueError(f"V must have {A.n} rows, one unit vector for each variable, got shape {rows.shape}")
    lengths = np.linalg.norm(rows, axis=1)
    if np.abs(lengths - 1.0).max() > UNIT_TOLERANCE:
        worst = int(np.argmax(np.abs(lengths - 1.0)))
        raise ValueError(f"V must have rows of unit length, but row {worst} has length {lengths[worst]:.6g}")
    rows = rows / lengths[:, None]
    return float(A.diagonal().sum() + (2.0 / np.pi) * _off_diagonal_sum(A, rows))


def _off_diagonal_sum(A: Operator, V: FloatArray) -> float:
    """Σ_{i≠j} A_ij arcsin(v_i · v_j)."""
    n, total = A.n, 0.0
    if A.sparse is not None:
        coo = A.sparse.tocoo()
        row, column = coo.coords
        data = np.where(row == column, 0.0, coo.data)
        for part in _parts(len(data), V.shape[1]):
            total += float(data[part] @ _arcsin(np.einsum("ij,ij->i", V[row[part]], V[column[part]])))
    if not A.is_sparse:
        for part in _parts(n, n):
            angles = _arcsin(V[part] @ V.T)
            angles[np.arange(len(angles)), np.arange(n)[part]] = 0.0
            total += float(np.vdot(A.array[part] if A.is_dense else (A.P[part] * A.weights) @ A.P.T, angles))
    return total


def _parts(count: int, width: int) -> Iterator[slice]:
    """Slices of 0…count, each of so few rows of ``width`` numbers that they can be held at once."""
    rows = max(1, ENTRIES_PER_BLOCK // width)
    return (slice(first, first + rows) for first in range(0, count, rows))


def _arcsin(products: FloatArray) -> FloatArray:
    """arcsin of inner products of unit vectors, which rounding may put just outside [−1, 1]."""
    return np.arcsin(np.clip(products, -1.0, 1.0))
