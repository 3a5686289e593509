"""Rows of unit length, and the one rule for what counts as a zero row.

After centering, a row that was nearly equal to the mean is nothing but rounding. It counts as zero if its norm is at
most `ZERO_ROW` times the typical norm of the rows *before* centering, and stays zero instead of being scaled up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hashlearn.core.arrays import FloatArray, is_tensor
from hashlearn.core.threads import map_row_blocks

ZERO_ROW = 1e-12
ZERO_ROW_SINGLE = 1e-6  # for tensors in single precision, whose centering rounds to 6e-8
SMALLEST = 1e-100  # entries whose squares are far from the smallest number
RAISE = 2.0**600  # a power of two, so that products round as before


def raised_rows(rows: FloatArray) -> FloatArray:
    """The rows, those with tiny entries alone times 2**600. Angles stay as they are, and no square is rounded to zero.

    >>> rows = raised_rows(np.array([[3e-170, 4e-170], [3.0, 4.0]]))
    >>> np.linalg.norm(rows, axis=1) > 0.0
    array([ True,  True])
    """
    tiny = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0)) < SMALLEST
    return np.where(tiny[:, None], rows * RAISE, rows) if tiny.any() else rows


def typical_norm(rows: Any) -> float:
    """The root mean square of the norms of the rows.

    >>> float(typical_norm(np.array([[3.0, 4.0], [0.0, 0.0]])))
    3.5355339059327378
    """
    if is_tensor(rows):
        return math.sqrt(float(rows.norm(dim=1).double().square().mean()))
    n = len(rows)
    squares = sum(map_row_blocks(lambda a, b: float(np.vdot(rows[a:b], rows[a:b])), *rows.shape))
    return (squares / n) ** 0.5 if n else 0.0


def scale_to_unit(rows: Any, typical: float) -> Any:
    """Divide every row by its norm, in place; zero rows become exactly zero. Returns ``rows``.

    >>> scale_to_unit(np.array([[3.0, 4.0], [1e-14, 0.0]]), 1.0)
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if is_tensor(rows):
        import torch

        smallest = (ZERO_ROW_SINGLE if rows.dtype == torch.float32 else ZERO_ROW) * typical
        norms = rows.norm(dim=1, keepdim=True)
        rows /= norms.clamp_min(1e-30)
        rows *= norms > smallest
        return rows

    def block(a: int, b: int) -> None:
        part = rows[a:b]
        norms = np.linalg.norm(part, axis=1, keepdims=True)
        far = norms > ZERO_ROW * typical
        np.divide(part, norms, out=part, where=far)
        part[~far[:, 0]] = 0.0

    map_row_blocks(block, *rows.shape)
    return rows
