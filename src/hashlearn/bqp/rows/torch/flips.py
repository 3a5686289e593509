"""1-flip descent of many sign vectors at once on a device: batches of rows flip together.

Each batch in turn computes (Ax) from T = PᵀX and flips all signs whose flip alone would lower the value. Together they
may raise it, so a column takes the flips only if its value fell. If it rose, the next batches flip only signs with
gains near the largest, down to a single flip, which always lowers the value. The device decides all of that, and the
host reads one result in a pass. A pass reads P twice. The descent ends when a pass gains less than the dtype resolves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hashlearn.bqp.rows.torch.cuda_graphs import CudaGraphs, Replayed
from hashlearn.bqp.rows.torch.products import thin_product, thin_sum
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like
from hashlearn.linalg.tensors import BLOCK, chunks, sums_of_squares

BATCHES = 4
SMALLEST_BATCH = 128
PATIENCE = 2  # passes in a row that gain next to nothing


def flip_descent(
    P: Tensor, weights: FloatArray, X: Tensor, between: Callable[[], Any], passes: int, graphs: CudaGraphs
) -> Tensor:
    """`Rows.flip_descent`; X is not changed."""
    descent = graphs.begun(FlipDescent, P, weights, X)
    eps, idle = torch.finfo(P.dtype).eps, 0
    for _ in range(passes):
        before = descent.value.clone()
        descent.one_pass()
        between()
        change = (before - descent.value) / descent.value.abs().clamp_min(np.finfo(np.float64).tiny)
        idle = idle + 1 if float(change.max()) <= 16.0 * eps else 0
        if int(descent.flips) == 0 or idle == PATIENCE:
            break
    return descent.X.clone()


class FlipDescent:
    """Signs, products and values of a fixed number of columns, at fixed places in memory."""

    def __init__(self, P: Tensor, weights: FloatArray, X: Tensor) -> None:
        n, rank = P.shape
        self._P, self._weights = P, weights
        self._w64 = tensor_like(weights, P, torch.float64)
        self.X = P.new_empty(X.shape)
        self.value = self._w64.new_empty(X.shape[1])
        self.flips = torch.zeros((), dtype=torch.int64, device=P.device)
        self._T = self._w64.new_empty((rank, X.shape[1]))
        self._threshold = self._w64.new_empty(X.shape[1])  # of the largest gain in the batch that a flip must have
        self._diagonal = P.new_empty((n, 1))
        self._noise = P.new_empty(())
        batch = max(SMALLEST_BATCH, -(-n // BATCHES))
        self._batch = batch if batch < BLOCK else -(-batch // BLOCK) * BLOCK
        self._replayed = Replayed(P)
        self.begin(P, X)

    def serves(self, P: Tensor, weights: FloatArray, X: Tensor) -> bool:
        same = P.data_ptr() == self._P.data_ptr() and P.stride() == self._P.stride()
        return same and X.shape == self.X.shape and np.array_equal(weights, self._weights)

    def begin(self, P: Tensor, X: Tensor) -> None:
        self.X.copy_(X)
        diagonal, squares = sums_of_squares(P, self._weights)
        self._diagonal.copy_(diagonal)
        self._noise.copy_(4.0 * torch.finfo(P.dtype).eps * squares.max().sqrt())
        self._T.copy_(thin_sum(P, self.X))
        self.value.copy_(self._w64 @ self._T.square())
        self._threshold.zero_()

    def one_pass(self) -> None:
        self._replayed(self._pass)

    def _pass(self) -> None:
        P, w64, T, value, threshold = self._P, self._w64, self._T, self.value, self._threshold
        self.flips.zero_()
        for rows in chunks(len(P), self._batch):
            X = self.X[rows]
            B = (w64[:, None] * T).to(P.dtype)
            gain = torch.sub(X * thin_product(P[rows], B), self._diagonal[rows])
            least = torch.maximum(threshold.to(P.dtype) * gain.amax(dim=0), self._noise * B.norm(dim=0))
            step = torch.where(gain > least, -2.0 * X, 0.0)
            trial = T + thin_sum(P[rows], step)
            trial_value = w64 @ trial.square()
            falls = trial_value < value
            X.addcmul_(step, falls.to(P.dtype))
            T.copy_(torch.where(falls, trial, T))
            value.copy_(torch.where(falls, trial_value, value))
            moved = (step != 0.0).any(dim=0)
            rises = moved & ~falls
            threshold.copy_(torch.where(rises, 0.5 + 0.5 * threshold, (threshold - 0.1).clamp_min(0.0)))
            self.flips += moved.sum()
