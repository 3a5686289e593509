"""Coordinate sweeps over a sample of rows on a device: blocks of rows step together, and the value still never rises.

For the rows b of a block A_bb ⪯ σI with σ = λ_max of the part of positive weight, so the value less σ‖V_b‖² is concave
in V_b and its linearisation is minimised by v_i ← −(g_i − σ v_i)/‖·‖.
"""

from __future__ import annotations

import torch

from hashlearn.bqp.passes.base import FloatArray
from hashlearn.bqp.passes.torch_blocks import Tensor, block_products, chunks, on_device, to_host

BLOCKS = 8
SMALLEST_BLOCK = 64
POWER_STEPS = 12
MARGIN = 1.1  # the power method comes from below


class BlockMixing:
    """`Mixing`, with a V of its own."""

    def __init__(self, P: Tensor, weights: FloatArray, V: Tensor) -> None:
        self._P, self._V = P, V.clone()
        self._weights = on_device(weights, P)[:, None]
        self._blocks = list(chunks(P.shape[0], max(SMALLEST_BLOCK, -(-P.shape[0] // BLOCKS))))
        positive = torch.as_tensor(weights > 0.0, device=P.device)
        Z = P[:, positive] * self._weights[positive, 0].sqrt()
        self._shifts = [MARGIN * s for s in _largest_squares(Z, self._blocks)]
        self._T = block_products(P, V).to(V.dtype)  # kept up to date: what rounding adds in some sweeps is no matter

    def sweep(self) -> float:
        """Every block once; the movement is that of a row in the mean. A row that nothing pulls at becomes 0."""
        P, V, T, before = self._P, self._V, self._T, self._V.clone()
        tiny = torch.finfo(V.dtype).tiny
        for rows, shift in zip(self._blocks, self._shifts, strict=True):
            G = torch.addmm(V[rows], P[rows], self._weights * T, beta=-shift)
            norms = torch.linalg.vector_norm(G, dim=1, keepdim=True).clamp_min_(tiny)
            V[rows] = G.div_(norms).neg_()
            T.addmm_(P[rows].T, V[rows] - before[rows])
        return float(torch.linalg.vector_norm(before.sub_(V))) ** 2 / V.shape[0]

    def image(self) -> FloatArray:
        """To the host."""
        return to_host(block_products(self._P, self._V))


def _largest_squares(Z: Tensor, blocks: list[slice]) -> list[float]:
    """λ_max of Z_b Z_bᵀ for every block, by the power method, all blocks together."""
    if Z.shape[1] == 0:
        return [0.0] * len(blocks)
    grams = torch.stack([Z[rows].T @ Z[rows] for rows in blocks])
    u = torch.ones((len(blocks), Z.shape[1], 1), dtype=Z.dtype, device=Z.device)
    size = torch.zeros(len(blocks), dtype=Z.dtype, device=Z.device)
    for _ in range(POWER_STEPS):
        u = torch.bmm(grams, u)
        size = torch.linalg.vector_norm(u, dim=(1, 2))
        u = u / size.clamp_min(torch.finfo(Z.dtype).tiny)[:, None, None]
    return [float(s) for s in size.cpu()]
