"""The problem of one bit, eqs. (4) and (5): A = Z̄Z̄ᵀ − n_bits · Y, with Z̄ the codes without that bit.

The factor [Z̄, P_Y] lives in one buffer: going from one bit to the next changes a single column of it, so no copy of P
is made for a bit. Objective (3) is evaluated through small Gram matrices, O(n · rank²) once and O(n · rank) after that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.rows import Rows, rows_of
from hashlearn.bqp.rows.interface import TallArray
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.core.arrays import FloatArray


class BitProblems:
    """The n_bits problems of one code, kept up to date as bits change."""

    def __init__(self, target: bqp.Operator, codes: Any) -> None:
        self.codes = codes  # a matrix of the same kind as the rows of the target, changed in place
        self._codes = rows_of(codes)
        self.n, self.n_bits = self._codes.n, self._codes.rank
        self._target = target
        self._target_square: float | None = None
        self._sparse: bqp.Sparse | None = None
        self._dense: FloatArray | None = None
        if isinstance(target, bqp.Dense):
            self._dense = codes @ codes.T - self.n_bits * target.array
            self._held_out: int | None = None
            return
        low_rank = target if isinstance(target, bqp.LowRank) else getattr(target, "low_rank", None)
        sparse = target if isinstance(target, bqp.Sparse) else getattr(target, "sparse", None)
        if sparse is not None:
            self._sparse = sparse.scaled(-float(self.n_bits))
        rows: Rows = NumpyRows(np.empty((self.n, 0))) if low_rank is None else low_rank.rows
        weights = np.empty(0) if low_rank is None else low_rank.weights
        self._factor = rows.beside(self._codes, skipped=0)
        self._weights = np.r_[np.ones(self.n_bits - 1), -self.n_bits * weights]
        self._slot_of = {bit: bit - 1 for bit in range(1, self.n_bits)}  # where each bit but the held-out one stands
        self._held_out = 0

    def column(self, bit: int) -> TallArray:
        """The signs of ``bit``, a copy."""
        return self._codes.column(bit)

    def problem(self, bit: int) -> bqp.Operator:
        """A of eq. (5) for ``bit``. Valid until the next call."""
        if self._dense is not None:
            z = self._codes.column(bit)
            return bqp.Dense.unchecked(self._dense - np.multiply.outer(z, z))
        if bit != self._held_out:
            slot = self._slot_of.pop(bit)
            assert self._held_out is not None
            self._factor.set_column(slot, self._codes.column(self._held_out))
            self._slot_of[self._held_out] = slot
            self._held_out = bit
        if self._factor.rank == 0:
            assert self._sparse is not None
            return self._sparse
        low_rank = bqp.LowRank.unchecked(self._factor, self._weights)
        return low_rank if self._sparse is None else bqp.SparsePlusLowRank(self._sparse, low_rank)

    def update(self, bit: int, x: TallArray) -> None:
        """Take x as the new signs of ``bit``, the bit whose problem was asked for last."""
        if self._dense is not None:
            z = self._codes.column(bit)
            self._dense += np.multiply.outer(x, x) - np.multiply.outer(z, z)
        self._codes.set_column(bit, x)

    def objective(self) -> float:
        """`objective` of the codes as they stand."""
        if self._target_square is None:
            self._target_square = frobenius_square(self._target)
        return objective(self._target, self.codes, self._target_square)


def objective(target: bqp.Operator, codes: Any, target_square: float | None = None) -> float:
    """‖ZZᵀ/n_bits − Y‖² / n²: the mean squared error of eq. (3), in units where inner products lie in [−1, 1].

    ``codes`` are signs of the same kind as the rows of the target: a NumPy array, or whatever they are.

    >>> objective(bqp.LowRank([[1.0], [-1.0]], [1.0]), np.array([[1.0], [1.0]]))
    2.0
    """
    rows = rows_of(codes)
    square = frobenius_square(target) if target_square is None else target_square
    if isinstance(target, bqp.LowRank):
        products = target.rows.transposed(codes)
        return objective_of_products(rows.gram(), products, target.weights, square, rows.n)
    return _mean_square(rows.gram(), float(np.einsum("ij,ij->", codes, target @ codes)), square, rows.n)


def objective_of_products(
    gram: FloatArray, products: FloatArray, weights: FloatArray, target_square: float, n: int
) -> float:
    """`objective` of n codes for the target F diag(weights) Fᵀ, from ZᵀZ, FᵀZ and ‖Y‖²."""
    cross = float(weights @ np.einsum("ij,ij->i", products, products))
    return _mean_square(gram, cross, target_square, n)


def _mean_square(gram: FloatArray, cross: float, target_square: float, n: int) -> float:
    n_bits = len(gram)
    return max(float(np.sum(gram * gram)) / n_bits**2 - 2.0 * cross / n_bits + target_square, 0.0) / n / n


def frobenius_square(Y: bqp.Operator) -> float:
    """‖Y‖²_F without forming Y.

    >>> frobenius_square(bqp.LowRank([[1.0], [2.0]], [3.0]))
    225.0
    """
    if isinstance(Y, bqp.Dense):
        return float(np.sum(Y.array * Y.array))
    if isinstance(Y, bqp.Sparse):
        return float(np.sum(Y.matrix.data**2))
    if isinstance(Y, bqp.LowRank):
        gram = Y.rows.gram() * Y.weights
        return float(np.sum(gram * gram.T))
    assert isinstance(Y, bqp.SparsePlusLowRank)
    product = Y.sparse @ (Y.low_rank.P * Y.low_rank.weights)
    cross = float(np.einsum("ij,ij->", Y.low_rank.P, product))
    return frobenius_square(Y.sparse) + 2.0 * cross + frobenius_square(Y.low_rank)
