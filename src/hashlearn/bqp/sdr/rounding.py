"""A solution of the relaxation (10), unit rows V with X = VVᵀ, and the signs that come from it.

Randomized rounding is x̂ = sgn(ξ) with ξ ∼ N(0, VVᵀ), eq. (11): ξ = V z with z ∼ N(0, I_k). The values of all draws are
computed together, block of rows by block of rows. For low rank a draw costs O(n · (k + rank)). 1-flip descent follows.
The mean over all draws has a closed form, eq. (13): O(nnz · k) time for a sparse A and O(n² (k + rank)) otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hashlearn.bqp.operators import Operator, as_operator
from hashlearn.bqp.rows import Array
from hashlearn.bqp.solution import relative_gap
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import finite_float64
from hashlearn.core.threads import map_row_blocks
from hashlearn.core.thresholds import DENSE_CERTIFICATE_LIMIT

MAX_PASSES = 1000
DRAWS_AT_ONCE = 32  # for operators other than low rank: bounds the n × draws block that is multiplied by A
SIGNS_AT_ONCE = 2**23  # fewer draws at once if n is large
ENTRIES_PER_BLOCK = 2_000_000  # of the inner products held at once
UNIT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Tolerance:
    """When a relaxation is solved: value − bound ≤ relative · max(|bound|, 1e-3 · scale)."""

    relative: float
    scale: float  # a typical size of Σ_i |(Ax)_i|: keeps the test meaningful when the optimum is 0
    max_rounds: int
    proof_limit: int = DENSE_CERTIFICATE_LIMIT  # an A that is not low rank is factored for its proof up to this n

    def met(self, value: float, bound: float) -> bool:
        """Whether the gap is closed."""
        return bound > -np.inf and value - bound <= self.relative * max(abs(bound), 1e-3 * self.scale)

    def enough(self, value: float) -> float:
        """A bound that closes the gap, with a tenth of it as a margin."""
        return value - 0.9 * min(self.relative, 0.1) * max(abs(value), 1e-3 * self.scale)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Unit rows, stored as V itself or, for a low-rank A, as the rank × k factor B with v_i ∝ −p_iᵀB."""

    operator: Operator
    value: float  # trace(A VVᵀ)
    bound: float  # ≤ the optimum of (10) ≤ the optimum of (5)
    rank: int
    certificate: str
    unit_rows: Array | None = None
    low_rank_factor: FloatArray | None = None

    @property
    def gap(self) -> float:
        """(value − bound) / |bound|: how far from solved the relaxation can be at most."""
        return relative_gap(self.value, self.bound)

    def rows(self, first: int = 0, last: int | None = None) -> Array:
        """Rows first…last of V; from a factor only where P is a NumPy array."""
        if self.unit_rows is not None:
            return self.unit_rows[first:last]
        V, norms = self.operator.rows.unit_rows(self.operator.P[first:last], self.low_rank_factor)
        V[norms == 0.0, 0] = 1.0  # any unit vector is optimal for such a row
        return V

    def draw(self, normals: FloatArray) -> Array:
        """The rounded signs of every column of ``normals`` (k × draws), shape (n, draws)."""
        A = self.operator
        if self.low_rank_factor is not None:
            return A.rows.draw(self.low_rank_factor, normals)
        if not A.rows.on_host:
            V: Any = self.unit_rows
            return A.rows.xp.where(V @ A.rows.from_numpy(normals).to(V.dtype) < 0.0, -1.0, 1.0)

        def signs(first: int, last: int) -> FloatArray:
            return np.where(self.rows(first, last) @ normals < 0.0, -1.0, 1.0)

        return np.concatenate(map_row_blocks(signs, A.n, A.rank if A.is_low_rank else 1))

    def draws(self, normals: FloatArray) -> Iterator[tuple[Array | None, FloatArray]]:
        """``(signs, values)`` of all draws, some columns at a time; from a low-rank factor values alone, at once."""
        A, B = self.operator, self.low_rank_factor
        if B is not None:
            products = A.rows.draw_products(B, normals)
            yield None, A.weights @ (products * products)
            return
        count = max(1, min(DRAWS_AT_ONCE, SIGNS_AT_ONCE // A.n))
        for first in range(0, normals.shape[1], count):
            X = self.draw(normals[:, first : first + count])
            yield X, column_values(A, X)


def column_values(A: Operator, X: Array) -> FloatArray:
    """xᵀAx for every column of X."""
    if A.is_low_rank:
        products = A.rows.transposed(X)
        return A.weights @ (products * products)
    return A.rows.to_numpy((X * (A @ X)).sum(axis=0))


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
