"""Means and Gram matrices of many rows, block by block: sums do not depend on the number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, sum_row_blocks


def column_means(X: Any) -> FloatArray:
    """Means of the columns, summed in float64, for dense and sparse X."""
    return np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()


def gram(P: Any, Q: Any = None) -> FloatArray:
    """PᵀQ, or PᵀP, in float64; each block of rows is multiplied in the arrays' own dtype.

    >>> gram(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 2.],
           [2., 5.]])
    """
    Q = P if Q is None else Q
    return sum_row_blocks(lambda a, b: (P[a:b].T @ Q[a:b]).astype(np.float64, copy=False), len(P), P.shape[1])


def product(P: Any, W: Any) -> Any:
    """P @ W, one block of rows at a time on all cores; W has one or two dimensions."""
    return np.concatenate(map_row_blocks(lambda a, b: P[a:b] @ W, len(P), P.shape[1]))
