"""1-flip descent of many sign vectors at once on a device: batches of rows flip together.

In turn each batch computes its fields from T = PᵀX and flips all signs that would gain by it alone. Together they may
lose, so a column takes them only where its value fell; where it rose, the next batches flip only signs with gains near
the largest, down to a single flip, which always falls. All of that is decided on the device: one look from the host a
pass. Two reads of P a pass; descent ends where a pass gains less than the dtype can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hashlearn.bqp.passes.base import FloatArray
from hashlearn.bqp.passes.torch_blocks import BLOCK, Tensor, block_products, chunks, on_device, sums_of_squares

BATCHES = 16
SMALLEST_BATCH = 128
PATIENCE = 2  # passes in a row that gain next to nothing


def flip_descent(P: Tensor, weights: FloatArray, X: Tensor, between: Callable[[], Any], passes: int) -> Tensor:
    """`Rows.flip_descent`; X itself is left alone."""
    n = P.shape[0]
    X = X.to(P.dtype, copy=True)
    eps = torch.finfo(P.dtype).eps
    w64 = on_device(weights, P, torch.float64)
    diagonal, squares = sums_of_squares(P, weights)
    noise = 4.0 * eps * squares.max().sqrt()
    T = sum(block_products(P[rows], X[rows]) for rows in chunks(n))
    value = w64 @ T.square()
    threshold = torch.zeros_like(value)  # of the largest gain in the batch that a flip must have
    batch = max(SMALLEST_BATCH, -(-n // BATCHES))
    batch = batch if batch < BLOCK else -(-batch // BLOCK) * BLOCK
    idle = 0
    for _ in range(passes):
        before, flips = value, 0
        for rows in chunks(n, batch):
            B = (w64[:, None] * T).to(P.dtype)
            field = P[rows] @ B
            gain = X[rows] * field - diagonal[rows]
            least = torch.maximum(threshold.to(P.dtype) * gain.amax(dim=0), noise * B.norm(dim=0))
            step = torch.where(gain > least, -2.0 * X[rows], 0.0)
            trial = T + block_products(P[rows], step)
            trial_value = w64 @ trial.square()
            falls = trial_value < value
            X[rows] += step * falls
            T = torch.where(falls, trial, T)
            value = torch.where(falls, trial_value, value)
            moved = (step != 0.0).any(dim=0)
            rises = moved & ~falls
            threshold = torch.where(rises, 0.5 + 0.5 * threshold, (threshold - 0.1).clamp_min(0.0))
            flips = flips + moved.sum()
        between()
        gained = float(((before - value) / value.abs().clamp_min(np.finfo(np.float64).tiny)).max())
        idle = idle + 1 if gained <= 16.0 * eps else 0
        if int(flips) == 0 or idle == PATIENCE:
            break
    return X
