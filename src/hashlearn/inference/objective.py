"""Objective (3) of codes for a target, through small Gram matrices: O(n · rank²) once and O(n · rank) after that."""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.rows import rows_of
from hashlearn.core.arrays import FloatArray


def objective(target: bqp.Operator, codes: Any, target_square: float | None = None) -> float:
    """‖ZZᵀ/n_bits − Y‖² / n²: the mean squared error of eq. (3), in units where inner products lie in [−1, 1].

    ``codes`` are signs of the same kind as the rows of the target: a NumPy array or a tensor.

    >>> objective(bqp.LowRank([[1.0], [-1.0]], [1.0]), np.array([[1.0], [1.0]]))
    2.0
    """
    rows = rows_of(codes)
    square = frobenius_square(target) if target_square is None else target_square
    if target.is_low_rank:
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
    if Y.is_dense:
        return float(np.sum(Y.array * Y.array))
    gram = Y.rows.gram() * Y.weights
    square = float(np.sum(gram * gram.T))
    if Y.sparse is None:
        return square
    cross = float(np.einsum("ij,ij->", Y.P, Y.sparse @ (Y.P * Y.weights)))
    return float(np.sum(Y.sparse.data**2)) + 2.0 * cross + square
