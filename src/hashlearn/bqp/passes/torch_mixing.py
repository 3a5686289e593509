"""Coordinate sweeps over few rows on a device: blocks of rows step together, and the value still never rises.

For the rows b of a block A_bb ⪯ σI with σ = λ_max of the part of positive weight, so the value less σ‖V_b‖² is concave
in V_b and its linearisation is minimised by v_i ← −(g_i − σ v_i)/‖·‖. The rows are few (a sample): A is formed.
"""

from __future__ import annotations

import torch

from hashlearn.bqp.passes.base import FloatArray
from hashlearn.bqp.passes.torch_blocks import Tensor, block_products, chunks, on_device, to_host

STEP_ROWS = 512
POWER_STEPS = 12
MARGIN = 1.1  # the power method comes from below


class BlockMixing:
    """`Mixing` for a sample of rows; V is changed in place."""

    def __init__(self, P: Tensor, weights: FloatArray, V: Tensor) -> None:
        self._P, self._V = P, V.clone()
        w = on_device(weights, P)
        self._A = (P * w) @ P.T
        self._blocks = list(chunks(P.shape[0], STEP_ROWS))
        positive = torch.as_tensor(weights > 0.0, device=P.device)
        Z = P[:, positive] * w[positive].sqrt()
        self._shifts = [MARGIN * s for s in _largest_squares(Z, self._blocks)]

    def sweep(self) -> float:
        """Every block once; the movement is that of a row in the mean."""
        V, before = self._V, self._V.clone()
        tiny = torch.finfo(V.dtype).tiny
        for rows, shift in zip(self._blocks, self._shifts, strict=True):
            G = torch.addmm(V[rows], self._A[rows], V, beta=-shift)
            norms = torch.linalg.vector_norm(G, dim=1, keepdim=True)
            V[rows] = torch.where(norms > tiny, G / norms.clamp_min(tiny).neg_(), V[rows])
        return float((V - before).square().sum()) / V.shape[0]

    def image(self) -> FloatArray:
        """To the host."""
        return to_host(block_products(self._P, self._V))


def _largest_squares(Z: Tensor, blocks: list[slice]) -> list[float]:
    """λ_max of Z_b Z_bᵀ for every block, by the power method."""
    if Z.shape[1] == 0:
        return [0.0] * len(blocks)
    found = []
    for rows in blocks:
        G = Z[rows].T @ Z[rows]
        u = torch.ones(Z.shape[1], dtype=Z.dtype, device=Z.device)
        for _ in range(POWER_STEPS):
            u = G @ u
            u = u / torch.linalg.vector_norm(u).clamp_min(torch.finfo(Z.dtype).tiny)
        found.append(torch.linalg.vector_norm(G @ u))
    return [float(s) for s in torch.stack(found).cpu()]
