"""The small dense algebra of a low-rank certificate on a device, in float64. It trusts matrix products only.

Textbook error bounds may not cover a vendor's factorizations, so their results are only proposals:

* for M ≻ 0 and *any* X, BᵀM⁻¹B ⪰ XᵀB + BᵀX − XᵀMX, because (X − M⁻¹B)ᵀ M (X − M⁻¹B) ⪰ 0. X from a solver loses
  next to nothing; a poor X would weaken the bound but keep it valid;
* S ⪰ −‖S − LLᵀ‖_F I for *any* L. The residual is computed and compared with the slack left for it.

What remains is the rounding of products: each entry of a product of inner length m, added in any order, is off by at
most m·eps/(1 − m·eps) times the product of absolute values (Higham 2002, section 3.1), in the Frobenius norm at most
that times the factors' norms. IEEE arithmetic, fused or not, is assumed; emulated float64 must not be switched on.
"""

from __future__ import annotations

import numpy as np
import torch

from hashlearn.bqp.rows.inertia import EPS
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like, to_float64


class TorchInertia:
    """`Inertia` on a device. H has the columns of positive weight first, then those of negative weight."""

    def __init__(self, gram: Tensor, weights: FloatArray) -> None:
        self._order = np.argsort(weights < 0.0, kind="stable")
        self._p = int((weights > 0.0).sum())
        index = torch.as_tensor(self._order, device=gram.device)
        scale = tensor_like(np.sqrt(np.abs(weights[self._order])), gram)
        self._H = gram[index][:, index] * scale[:, None] * scale
        self.trace = float(self._H.diagonal().sum())

    def matrix(self) -> FloatArray:
        """H as a NumPy array, in the order of the weights."""
        back = np.argsort(self._order)
        return to_float64(self._H)[np.ix_(back, back)]

    def holds(self, c: float, margin: float) -> bool:
        """Decides by the two inequalities of the module docstring, with one transfer to the host."""
        p, H = self._p, self._H
        m = len(H) - p
        schur = -H[p:, p:]
        slack = torch.zeros((), dtype=H.dtype, device=H.device)
        if p:
            M, B = H[:p, :p].clone(), H[:p, p:]
            M.diagonal().add_(c + margin)
            X = torch.cholesky_solve(B, torch.linalg.cholesky_ex(M)[0])
            Y = 2.0 * B - M @ X  # XᵀB + BᵀX − XᵀMX is the symmetric part of XᵀY
            schur = schur + X.T @ Y
            x = torch.linalg.matrix_norm(X)
            rounded = p * torch.linalg.matrix_norm(M) * x + 2.0 * torch.linalg.matrix_norm(B)  # of Y
            slack = 2.0 * EPS * x * (rounded + p * torch.linalg.matrix_norm(Y))
        schur = 0.5 * (schur + schur.T)
        schur.diagonal().add_(c - margin - slack)
        # For the rounding of S and of LLᵀ, whose Frobenius norm is at most trace S ≤ m·c + trace H.
        left = 4.0 * (m + 4) * EPS * (m * (abs(c) + margin) + self.trace)
        schur.diagonal().sub_(left)
        L, info = torch.linalg.cholesky_ex(schur)
        size = torch.linalg.matrix_norm(L)
        off = torch.linalg.matrix_norm(schur - L @ L.T) + (m + 4) * EPS * (size * size)
        # NaN from a factorization that broke down compares false.
        return bool((info == 0) & (off <= left))
