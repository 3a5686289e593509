"""Steps of many rows at once on a device: coordinate sweeps of unit rows, and 1-flip descent of signs.

Sweeps: blocks of rows step together, and the value still never rises. For the rows b of a block, A_bb ⪯ σI with
σ = λ_max of the part of positive weight. So the value less σ‖V_b‖² is concave in V_b, and v_i ← −(g_i − σ v_i)/‖·‖
minimizes its linearization.

Flips: each batch of rows in turn computes (Ax) from T = PᵀX and flips all signs whose flip alone would lower the value.
Together they may raise it, so a column takes the flips only if its value fell. If it rose, the next batches flip only
signs with gains near the largest, down to a single flip, which always lowers the value. The device decides all of that,
and the host reads one result in a pass. A pass reads P twice. The descent ends when a pass gains less than the dtype
resolves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hashlearn.bqp.rows.cuda_graphs import CudaGraphs, Replayed
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like, to_float64
from hashlearn.linalg.tensors import (
    BLOCK,
    block_products,
    chunks,
    rough_products,
    small_factor,
    sums_of_squares,
    thin_product,
    thin_sum,
    whole_rows,
)

# Sweeps:
BLOCKS = 2
SMALLEST_BLOCK = 64
SQUARINGS = 4
MARGIN = 1.01  # for rounding
# Flips:
BATCHES = 4
SMALLEST_BATCH = 128
PATIENCE = 2  # passes in a row that gain next to nothing


class BlockMixing:
    """`Mixing` with buffers at fixed places in memory. ``begin`` with other rows overwrites the P it was made with."""

    def __init__(self, P: Tensor, weights: FloatArray, V: Tensor) -> None:
        n = P.shape[0]
        self._P, self._V, self._given_weights = P, torch.empty_like(V), weights
        self._rows = whole_rows(P)
        small = tensor_like(weights, P)[:, None]
        self._weights = small_factor(small, self._rows.shape[1])[:, :1]
        self._blocks = list(chunks(n, max(SMALLEST_BLOCK, -(-n // BLOCKS))))
        self._positive = torch.as_tensor(np.flatnonzero(weights > 0.0), device=P.device)
        self._roots = small[self._positive, 0].sqrt()
        self._shifts = P.new_empty(len(self._blocks))
        self._T = P.new_empty((self._rows.shape[1], V.shape[1]))
        self._factor = torch.empty_like(self._T.T).T  # stored column by column
        self._before, self._moved = torch.empty_like(self._V), V.new_zeros(())
        self._replayed = Replayed(P)
        self.begin(P, V)

    def serves(self, P: Tensor, weights: FloatArray, V: Tensor) -> bool:
        same = P.shape == self._P.shape and P.stride() == self._P.stride() and V.shape == self._V.shape
        return same and np.array_equal(weights, self._given_weights)

    def begin(self, P: Tensor, V: Tensor) -> None:
        if P is not self._P:
            self._rows.copy_(whole_rows(P))
        self._V.copy_(V)
        Z = self._P.index_select(1, self._positive) * self._roots
        self._shifts.copy_(MARGIN * _largest_squares(Z, self._blocks))
        # Every sweep updates T. The rounding that a few dozen sweeps add does not matter.
        with rough_products(self._P):
            self._T.copy_(block_products(self._rows, self._V))

    def sweep(self) -> float:
        """One step of every block; returns the mean squared movement of a row. A row with zero gradient becomes 0."""
        with rough_products(self._P):
            self._replayed(self._one_sweep)
        return float(self._moved) ** 2 / self._V.shape[0]

    def _one_sweep(self) -> None:
        P, V, T, before = self._rows, self._V, self._T, self._before.copy_(self._V)
        tiny = torch.finfo(V.dtype).tiny
        for rows, shift in zip(self._blocks, self._shifts.split(1), strict=True):
            torch.mul(self._weights, T, out=self._factor)
            G = (P[rows] @ self._factor).addcmul_(V[rows], shift, value=-1.0)
            norms = torch.linalg.vector_norm(G, dim=1, keepdim=True).clamp_min_(tiny).neg_()
            torch.div(G, norms, out=V[rows])
            T.addmm_(P[rows].T, V[rows] - before[rows])
        self._moved.copy_(torch.linalg.vector_norm(before.sub_(V)))

    def image(self) -> FloatArray:
        with rough_products(self._P):
            return to_float64(thin_sum(self._P, self._V))


def _largest_squares(Z: Tensor, blocks: list[slice]) -> Tensor:
    """(Σλ¹⁶)^(1/16) ≥ λ_max of Z_b Z_bᵀ for every block, by repeated squaring of Gram matrices."""
    if Z.shape[1] == 0:
        return torch.zeros(len(blocks), dtype=torch.float64, device=Z.device)
    grams = torch.stack([Z[rows].T @ Z[rows] for rows in blocks])
    logarithm = torch.zeros(len(blocks), dtype=torch.float64, device=Z.device)
    for doubling in range(SQUARINGS):
        trace = grams.diagonal(dim1=1, dim2=2).sum(dim=1).clamp_min(torch.finfo(Z.dtype).tiny)
        logarithm += trace.double().log() / 2**doubling
        grams = grams / trace[:, None, None]
        grams = torch.bmm(grams, grams)
    trace = grams.diagonal(dim1=1, dim2=2).sum(dim=1).clamp_min(torch.finfo(Z.dtype).tiny)
    return (logarithm + trace.double().log() / 2**SQUARINGS).exp()


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
