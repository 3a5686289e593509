"""From unit rows to signs: randomized rounding x̂ = sgn(ξ) with ξ ∼ N(0, VVᵀ), eq. (11), and 1-flip descent.

ξ = V z with z ∼ N(0, I_k). The values of all draws are computed together, block of rows by block of rows. For low rank
a draw costs O(n · (k + rank)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.rows.interface import TallArray
from hashlearn.bqp.sdr.relaxation import Relaxation
from hashlearn.bqp.sweeps import CoordinateSweeps
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, map_threads, sum_row_blocks

MAX_PASSES = 1000
DRAWS_AT_ONCE = 32  # for operators other than low rank: bounds the n × draws block that is multiplied by A


def draw_values(relaxation: Relaxation, normals: FloatArray) -> FloatArray:
    """xᵀAx of the rounded signs of every column of ``normals`` (k × draws)."""
    A, B = relaxation.operator, relaxation.low_rank_factor
    if isinstance(A, LowRank):
        if B is not None:
            products = A.rows.draw_products(B, normals)
        else:
            P = A.P
            products = sum_row_blocks(lambda a, b: P[a:b].T @ _signs(relaxation, normals, a, b), A.n, A.rank)
        return A.weights @ (products * products)
    values = []
    for first in range(0, normals.shape[1], DRAWS_AT_ONCE):
        values.append(column_values(A, draw(relaxation, normals[:, first : first + DRAWS_AT_ONCE])))
    return np.concatenate(values)


def column_values(A: Operator, X: TallArray) -> FloatArray:
    """xᵀAx for every column of X."""
    if isinstance(A, LowRank):
        products = A.rows.transposed(X)
        return A.weights @ (products * products)
    return np.einsum("ij,ij->j", X, A @ X)


def draw(relaxation: Relaxation, normals: FloatArray) -> TallArray:
    """The signs themselves, shape (n, draws)."""
    A, B = relaxation.operator, relaxation.low_rank_factor
    if isinstance(A, LowRank) and B is not None:
        return A.rows.draw(B, normals)
    width = A.rank if isinstance(A, LowRank) else 1
    return np.concatenate(map_row_blocks(lambda a, b: _signs(relaxation, normals, a, b), A.n, width))


def polish_all(A: Operator, X: TallArray, between: Callable[[], Any], max_passes: int = MAX_PASSES) -> TallArray:
    """1-flip descent of every column of X (n × draws, signs) to a local optimum, or for ``max_passes`` passes.

    No column gets worse.
    """
    if isinstance(A, LowRank):
        return A.rows.flip_descent(A.weights, X, between, max_passes)
    sweeps = CoordinateSweeps(A)
    columns = map_threads(lambda q: sweeps.descend(X[:, q], max_passes, between=between), range(X.shape[1]))
    return np.column_stack(list(columns))


def _signs(relaxation: Relaxation, normals: FloatArray, first: int, last: int) -> FloatArray:
    return np.where(relaxation.rows(first, last) @ normals < 0.0, -1.0, 1.0)
