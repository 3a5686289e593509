"""Coordinate sweeps over a sample of rows on a device: blocks of rows step together, and the value still never rises.

For the rows b of a block A_bb ⪯ σI with σ = λ_max of the part of positive weight, so the value less σ‖V_b‖² is concave
in V_b and its linearisation is minimised by v_i ← −(g_i − σ v_i)/‖·‖.
"""

from __future__ import annotations

import torch

from hashlearn.bqp.passes.base import FloatArray
from hashlearn.bqp.passes.torch_blocks import Tensor, block_products, chunks, on_device, to_host, whole_rows
from hashlearn.bqp.passes.torch_products import rough_products, small_factor, thin_sum
from hashlearn.bqp.passes.torch_replay import Replayed

BLOCKS = 2
SMALLEST_BLOCK = 64
SQUARINGS = 4
MARGIN = 1.01  # of rounding


class BlockMixing:
    """`Mixing`, with a V of its own."""

    def __init__(self, P: Tensor, weights: FloatArray, V: Tensor) -> None:
        self._P, self._V = P, V.clone()
        self._rows = whole_rows(P)
        small = on_device(weights, P)[:, None]
        self._weights = small_factor(small, self._rows.shape[1])[:, :1]
        self._blocks = list(chunks(P.shape[0], max(SMALLEST_BLOCK, -(-P.shape[0] // BLOCKS))))
        positive = torch.as_tensor(weights > 0.0, device=P.device)
        Z = P[:, positive] * small[positive, 0].sqrt()
        self._shifts = [MARGIN * s for s in _largest_squares(Z, self._blocks)]
        # Kept up to date: what rounding adds in some sweeps is no matter.
        with rough_products(P):
            self._T = block_products(self._rows, V).to(V.dtype)
        self._factor = torch.empty_like(self._T.T).T  # stored column by column
        self._before, self._moved = torch.empty_like(self._V), V.new_zeros(())
        self._replayed = Replayed(P)

    def sweep(self) -> float:
        """Every block once; the movement is that of a row in the mean. A row that nothing pulls at becomes 0."""
        with rough_products(self._P):
            self._replayed(self._one_sweep)
        return float(self._moved) ** 2 / self._V.shape[0]

    def _one_sweep(self) -> None:
        P, V, T, before = self._rows, self._V, self._T, self._before.copy_(self._V)
        tiny = torch.finfo(V.dtype).tiny
        for rows, shift in zip(self._blocks, self._shifts, strict=True):
            torch.mul(self._weights, T, out=self._factor)
            G = torch.addmm(V[rows], P[rows], self._factor, beta=-shift)
            norms = torch.linalg.vector_norm(G, dim=1, keepdim=True).clamp_min_(tiny).neg_()
            torch.div(G, norms, out=V[rows])
            T.addmm_(P[rows].T, V[rows] - before[rows])
        self._moved.copy_(torch.linalg.vector_norm(before.sub_(V)))

    def image(self) -> FloatArray:
        """To the host."""
        with rough_products(self._P):
            return to_host(thin_sum(self._P, self._V))


def _largest_squares(Z: Tensor, blocks: list[slice]) -> list[float]:
    """(Σλ¹⁶)^(1/16) ≥ λ_max of Z_b Z_bᵀ for every block, by squares of Gram matrices, all blocks together."""
    if Z.shape[1] == 0:
        return [0.0] * len(blocks)
    grams = torch.stack([Z[rows].T @ Z[rows] for rows in blocks])
    logarithm = torch.zeros(len(blocks), dtype=torch.float64, device=Z.device)
    for doubling in range(SQUARINGS):
        trace = grams.diagonal(dim1=1, dim2=2).sum(dim=1).clamp_min(torch.finfo(Z.dtype).tiny)
        logarithm += trace.double().log() / 2**doubling
        grams = grams / trace[:, None, None]
        grams = torch.bmm(grams, grams)
    trace = grams.diagonal(dim1=1, dim2=2).sum(dim=1).clamp_min(torch.finfo(Z.dtype).tiny)
    return (logarithm + trace.double().log() / 2**SQUARINGS).exp().tolist()
