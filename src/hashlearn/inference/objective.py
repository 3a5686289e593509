"""Objective (3) of codes for a target, through small Gram matrices: O(n · rank²) once and O(n · rank) after that."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from hashlearn import bqp
from hashlearn.bqp.rows import rows_of
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.targets import Groups

FLOOR_GROUPS = 500  # with more groups the floor is the bound by trace and rank: a better one takes seconds


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
    return mean_square(rows.gram(), float(np.einsum("ij,ij->", codes, target @ codes)), square, rows.n)


def objective_of_products(
    gram: FloatArray, products: FloatArray, weights: FloatArray, target_square: float, n: int
) -> float:
    """`objective` of n codes for the target F diag(weights) Fᵀ, from ZᵀZ, FᵀZ and ‖Y‖²."""
    cross = float(weights @ np.einsum("ij,ij->i", products, products))
    return mean_square(gram, cross, target_square, n)


def mean_square(gram: FloatArray, cross: float, target_square: float, n: int) -> float:
    """`objective` of n codes from ZᵀZ, the sum of Z ∘ YZ, and ‖Y‖²."""
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


def objective_floor(groups: Groups, n_bits: int) -> float:
    """No codes of n_bits bits, equal within groups or not, have a lower `objective`.

    X = ZZᵀ / (n · n_bits) is positive semidefinite, of rank n_bits at most, with 1/n on the diagonal. Any weights d of
    the diagonal bound ‖X − Y/n‖² from below by ‖Y/n‖² + 2 Σ d_i/n − Σ λ², λ the n_bits largest positive eigenvalues
    of Y/n + Diag(d) (docs/quality.md). With d constant in groups these are K × K eigenvalues, and d again for vectors
    that sum to 0 within a group. The best d is looked for; the first d is the bound by trace and rank,
    1 + 1/n_bits − 4 Σ shares² for classes.
    """
    shares, counts = groups.shares, groups.counts
    root = np.sqrt(shares)
    Y = root[:, None] * groups.similarity * root
    square, repeats = float(np.sum(Y * Y)), np.r_[np.ones(len(Y)), counts - 1.0]
    best = -np.inf

    def negative_bound(scaled: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        d = scaled * root
        values, vectors = np.linalg.eigh(Y + np.diag(d))
        values = np.maximum(np.r_[values, d], 0.0)
        order = np.argsort(-values)
        used = np.empty(len(values))  # how many eigenvalues of each kind are among the largest
        used[order] = np.clip(n_bits - np.r_[0.0, np.cumsum(repeats[order])[:-1]], 0.0, repeats[order])
        bound = square + 2.0 * float(shares @ d) - float(used @ values**2)
        best = max(best, bound)
        slope = used * values
        gradient = shares - vectors**2 @ slope[: len(Y)] - slope[len(Y) :]
        return -bound, -2.0 * root * gradient

    start = (1.0 / n_bits - 2.0 * shares) / root
    if len(Y) <= FLOOR_GROUPS:
        minimize(negative_bound, start, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    else:
        negative_bound(start)
    return max(best - 16.0 * len(Y) * EPS * square, 0.0)
