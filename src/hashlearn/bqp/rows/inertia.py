"""The small dense algebra of a low-rank certificate: does c·sgn(W) + |W|^½ G |W|^½ have the right inertia?

G = PᵀD⁻¹P comes from a pass over the rows. `Inertia` decides the question on the host, `TorchInertia` on a device.
See `hashlearn.bqp.sdr.certificate` for what follows from the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as la

from hashlearn.core.arrays import EPS, FloatArray, Tensor, tensor_like, to_float64
from hashlearn.core.threads import all_blas_threads
from hashlearn.core.thresholds import THREADED_CHOLESKY_RANK


class Inertia:
    """H = |W|^½ G |W|^½ and the signs of W, on the host.

    With the columns of positive weight first, M = cI + H₊₊ ≻ 0 always holds. The statement is then that the Schur
    complement cI − H₋₋ + BᵀM⁻¹B with B = H₊₋ is positive definite. ``margin`` moves every eigenvalue against us (Weyl).

    M may be so ill-conditioned that M⁻¹B is mostly rounding. But BᵀM⁻¹B ⪰ XᵀB + BᵀX − XᵀMX for *any* X, because
    (X − M⁻¹B)ᵀ M (X − M⁻¹B) ⪰ 0. So the computed M⁻¹B is only a proposal: a poor one weakens the bound but stays valid.
    The rest is the rounding of products: at most their length times EPS times the norms of their factors (Higham 2002,
    section 3.1).
    """

    def __init__(self, gram: FloatArray, weights: FloatArray) -> None:
        scale = np.sqrt(np.abs(weights))
        self._H: Any = gram * scale[:, None] * scale
        self._positive = weights > 0
        self.trace = float(np.trace(self._H))

    def matrix(self) -> FloatArray:
        """H as a NumPy array, which callers must not change."""
        return self._H

    def holds(self, c: float, margin: float) -> bool:
        """Whether c·sgn(W) + H' provably has no more than n₊(W) positive eigenvalues, for all H' within ``margin``.

        A Cholesky factorization that runs to its end decides.
        """
        H, positive = self._H, self._positive
        B, schur = H[np.ix_(positive, ~positive)], -H[np.ix_(~positive, ~positive)]
        slack = 0.0
        with all_blas_threads() if len(H) > THREADED_CHOLESKY_RANK else nullcontext():
            if p := len(B):
                M = H[np.ix_(positive, positive)]
                M[np.diag_indices(p)] += c + margin
                try:
                    X = la.cho_solve(la.cho_factor(M, check_finite=False), B, check_finite=False)
                except la.LinAlgError:  # M is definite, but not in floating point
                    return False
                Y = 2.0 * B - M @ X  # XᵀB + BᵀX − XᵀMX is the symmetric part of XᵀY
                schur += X.T @ Y
                x = la.norm(X, check_finite=False)
                rounded = p * la.norm(M, check_finite=False) * x + 2.0 * la.norm(B, check_finite=False)  # of Y
                slack = 2.0 * EPS * x * (rounded + p * la.norm(Y, check_finite=False))
            schur[np.diag_indices(len(schur))] += c - margin
            return is_positive_definite(0.5 * (schur + schur.T), slack)


class TorchInertia(Inertia):
    """`Inertia` on a device, in float64. It trusts matrix products only.

    H has the columns of positive weight first, then those of negative weight. Textbook error bounds may not cover a
    vendor's factorizations, so their results are only proposals:

    * the X of `Inertia` may come from any solver; a poor X would weaken the bound but keep it valid;
    * S ⪰ −‖S − LLᵀ‖_F I for *any* L. The residual is computed and compared with the slack left for it.

    What remains is the rounding of products: each entry of a product of inner length m, added in any order, is off by
    at most m·eps/(1 − m·eps) times the product of absolute values (Higham 2002, section 3.1), in the Frobenius norm at
    most that times the factors' norms. IEEE arithmetic, fused or not, is assumed; emulated float64 must not be switched
    on.
    """

    def __init__(self, gram: Tensor, weights: FloatArray) -> None:
        import torch

        self._order = np.argsort(weights < 0.0, kind="stable")
        self._p = int((weights > 0.0).sum())
        index = torch.as_tensor(self._order, device=gram.device)
        scale = tensor_like(np.sqrt(np.abs(weights[self._order])), gram)
        self._H: Tensor = gram[index][:, index] * scale[:, None] * scale
        self.trace = float(self._H.diagonal().sum())

    def matrix(self) -> FloatArray:
        back = np.argsort(self._order)
        return to_float64(self._H)[np.ix_(back, back)]

    def holds(self, c: float, margin: float) -> bool:
        """Decides by the two inequalities above, with one transfer to the host."""
        import torch

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


class ProofGram(NamedTuple):
    """PᵀD⁻¹P for a proof, on the host or on a device, and what is known about its rounding."""

    gram: Any  # rank × rank
    total: float  # ≥ Σd
    rounding: float  # the spectral norm of the error of ``gram`` is at most this · its trace
    kind: Callable[[Any, FloatArray], Inertia] = Inertia

    def inertia(self, weights: FloatArray) -> Inertia:
        """The matrix H for these weights, ready for questions."""
        return self.kind(self.gram, weights)


def is_positive_definite(S: FloatArray, slack: float) -> bool:
    """Whether every symmetric matrix within ``slack`` of S provably is positive semidefinite; S is overwritten.

    Rump 2006: a Cholesky factorization of S that runs to its end proves λ_min(S) ≥ −(n + 2) EPS · trace S.
    """
    diagonal = np.diag_indices(len(S))
    S[diagonal] -= slack + 2.0 * (len(S) + 2) * EPS * float(np.abs(S[diagonal]).sum())
    try:
        factor = la.cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    except la.LinAlgError:
        return False
    return bool(np.isfinite(factor.diagonal()).all())  # some libraries do not stop at a NaN
