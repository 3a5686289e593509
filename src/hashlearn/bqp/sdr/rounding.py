"""From unit rows to signs: randomised rounding x̂ = sgn(ξ) with ξ ∼ N(0, VVᵀ), eq. (11), and its polish.

ξ = V z with z ∼ N(0, I_k). All draws are valued together, in panels of rows: O(n · (k + rank)) a draw for low rank.
"""

from __future__ import annotations

import numpy as np

from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.rows.interface import TallArray
from hashlearn.bqp.sdr.relaxation import Relaxation
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, sum_row_blocks

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


def _signs(relaxation: Relaxation, normals: FloatArray, first: int, last: int) -> FloatArray:
    return np.where(relaxation.rows(first, last) @ normals < 0.0, -1.0, 1.0)
