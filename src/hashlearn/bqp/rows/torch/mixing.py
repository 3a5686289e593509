"""Coordinate sweeps over a sample of rows on a device: blocks of rows step together, and the value still never rises.

For the rows b of a block, A_bb ⪯ σI with σ = λ_max of the part of positive weight. So the value less σ‖V_b‖² is concave
in V_b, and v_i ← −(g_i − σ v_i)/‖·‖ minimizes its linearization.
"""

from __future__ import annotations

import numpy as np
import torch

from hashlearn.bqp.rows.torch.cuda_graphs import Replayed
from hashlearn.bqp.rows.torch.products import rough_products, small_factor, thin_sum
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like, to_float64
from hashlearn.linalg.tensors import block_products, chunks, whole_rows

BLOCKS = 2
SMALLEST_BLOCK = 64
SQUARINGS = 4
MARGIN = 1.01  # for rounding


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
