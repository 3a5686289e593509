"""Means, products and Gram matrices of many rows, block by block, the same for any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import block_rows, iter_row_blocks, map_row_blocks, sum_row_blocks

OPERATIONS = 1e10  # between two calls of ``check_time``


def gram(
    P: FloatArray, divisor: FloatArray | None = None, *, width: int = 1, check_time: Callable[[], Any] | None = None
) -> FloatArray:
    """Pᵀ Diag(divisor)⁻¹ P, or PᵀP without a divisor.

    The blocks are those of an array with ``width`` columns. ``check_time`` is called at times and may raise to stop.

    >>> gram(np.array([[1.0, 2.0], [0.0, 2.0]]), np.array([1.0, 4.0]))
    array([[1., 2.],
           [2., 5.]])
    """
    n, rank = P.shape
    total = np.zeros((rank, rank))
    block = block_rows(width)
    rows = n if check_time is None else block * max(4, int(OPERATIONS / (block * max(rank, 1) ** 2)))
    for first in range(0, n, max(rows, 1)):
        for part in iter_row_blocks(partial(_block_gram, P, divisor, first), min(rows, n - first), width):
            total += part
        if check_time is not None:
            check_time()
    return total


def _block_gram(P: FloatArray, divisor: FloatArray | None, start: int, first: int, last: int) -> FloatArray:
    block = slice(start + first, start + last)
    Q = P[block] if divisor is None else P[block] / np.sqrt(divisor[block])[:, None]
    return Q.T @ Q


def column_means(X: Any) -> FloatArray:
    """Means of the columns, summed in float64, for dense and sparse X."""
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()


def products(P: Any, Q: Any = None) -> FloatArray:
    """PᵀQ, or PᵀP, in float64; each block of rows is multiplied in the arrays' own dtype.

    >>> products(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]])
    """
    Q = P if Q is None else Q
    return sum_row_blocks(lambda a, b: (P[a:b].T @ Q[a:b]).astype(np.float64, copy=False), len(P), P.shape[1])


def product(P: Any, W: Any) -> Any:
    """P @ W, one block of rows at a time on all cores; W has one or two dimensions."""
    return np.concatenate(map_row_blocks(lambda a, b: P[a:b] @ W, len(P), P.shape[1]))
