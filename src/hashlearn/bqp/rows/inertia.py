"""The small dense algebra of a low-rank certificate: does c·sgn(W) + |W|^½ G |W|^½ have the right inertia?

G = PᵀD⁻¹P comes from a pass over the rows, as an array or as a tensor. `Inertia` decides the question where G is.
See `hashlearn.bqp.sdr.certificate` for what follows from the answer.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.linalg as la

from hashlearn.core.arrays import EPS, FloatArray, is_tensor, tensor_like, to_float64
from hashlearn.core.threads import all_blas_threads
from hashlearn.core.thresholds import THREADED_CHOLESKY_RANK


class Inertia:
    """H = |W|^½ G |W|^½ and the signs of W. It trusts matrix products in float64 only.

    H has the columns of positive weight first. M = cI + H₊₊ ≻ 0 always holds, so the statement is that the Schur
    complement S = cI − H₋₋ + BᵀM⁻¹B with B = H₊₋ is positive definite. ``margin`` moves every eigenvalue against us
    (Weyl). Textbook error bounds may not cover a vendor's factorizations, so their results are only proposals:

    * BᵀM⁻¹B ⪰ XᵀB + BᵀX − XᵀMX for *any* X, because (X − M⁻¹B)ᵀ M (X − M⁻¹B) ⪰ 0. M may be so ill-conditioned that the
      computed M⁻¹B is mostly rounding: a poor X weakens the bound and keeps it valid.
    * S ⪰ −‖S − LLᵀ‖_F I for *any* L. The residual is computed and compared with the slack left for it.

    What remains is the rounding of products: each entry of a product of inner length m, added in any order, is off by
    at most m·eps/(1 − m·eps) times the product of absolute values (Higham 2002, section 3.1), in the Frobenius norm at
    most that times the factors' norms. IEEE arithmetic, fused or not, is assumed; emulated float64 must not be switched
    on.
    """

    def __init__(self, gram: Any, weights: FloatArray) -> None:
        self._order = np.argsort(weights < 0.0, kind="stable")
        self._p = int((weights > 0.0).sum())
        scale: Any = np.sqrt(np.abs(weights[self._order]))
        scale = tensor_like(scale, gram) if is_tensor(gram) else scale
        self._H = gram[self._order][:, self._order] * scale[:, None] * scale
        self.trace = float(self._H.diagonal().sum())

    def matrix(self) -> FloatArray:
        """H as a NumPy array, its columns in the order of the weights."""
        back = np.argsort(self._order)
        return (to_float64(self._H) if is_tensor(self._H) else self._H)[np.ix_(back, back)]

    def holds(self, c: float, margin: float) -> bool:
        """Whether c·sgn(W) + H' provably has no more than n₊(W) positive eigenvalues, for all H' within ``margin``."""
        p, H = self._p, self._H
        m = len(H) - p
        schur, slack = -H[p:, p:], 0.0
        with all_blas_threads() if len(H) > THREADED_CHOLESKY_RANK and not is_tensor(H) else nullcontext():
            if p:
                M, B = _shifted(H[:p, :p], c + margin), H[:p, p:]
                X = _solution(_factor(M), B)
                Y = 2.0 * B - M @ X  # XᵀB + BᵀX − XᵀMX is the symmetric part of XᵀY
                schur = schur + X.T @ Y
                x = _norm(X)
                rounded = p * _norm(M) * x + 2.0 * _norm(B)  # of Y
                slack = 2.0 * EPS * x * (rounded + p * _norm(Y))
            # For the rounding of S and of LLᵀ, whose Frobenius norm is at most trace S ≤ m·c + trace H.
            left = 4.0 * (m + 4) * EPS * (m * (abs(c) + margin) + self.trace)
            schur = _shifted(0.5 * (schur + schur.T), c - margin - slack - left)
            L = _factor(schur)
            off = _norm(schur - L @ L.T) + (m + 4) * EPS * _norm(L) ** 2
        return bool(off <= left)  # NaN from a factorization that broke down compares false


def _shifted(S: Any, shift: Any) -> Any:
    """S + shift · I, a copy."""
    S, diagonal = S + 0.0, np.arange(len(S))
    S[diagonal, diagonal] += shift
    return S


def _factor(S: Any) -> Any:
    """The Cholesky factor of S, or anything else if there is none."""
    if is_tensor(S):
        import torch

        return torch.linalg.cholesky_ex(S)[0]
    try:
        return la.cholesky(S, lower=True, check_finite=False)
    except la.LinAlgError:
        return np.full_like(S, np.nan)


def _solution(L: Any, B: Any) -> Any:
    """(LLᵀ)⁻¹ B."""
    if is_tensor(B):
        import torch

        return torch.cholesky_solve(B, L)
    return la.cho_solve((L, True), B, check_finite=False)


def _norm(S: Any) -> Any:
    """The Frobenius norm."""
    return (S * S).sum() ** 0.5


def is_positive_definite(S: FloatArray, slack: float) -> bool:
    """Whether every symmetric matrix within ``slack`` of S provably is positive semidefinite; S is overwritten.

    Rump 2006: a Cholesky factorization of S that runs to its end proves λ_min(S) ≥ −(n + 2) EPS · trace S.
    """
    diagonal = np.diag_indices(len(S))
    S[diagonal] -= slack + 2.0 * (len(S) + 2) * EPS * float(np.abs(S[diagonal]).sum())
    try:
        factor = la.cholesky(S.T, lower=False, overwrite_a=True, check_finite=False)  # S.T: no copy is made
    except la.LinAlgError:
        return False
    return bool(np.isfinite(factor.diagonal()).all())  # some libraries do not stop at a NaN
