"""The small dense algebra of a low-rank certificate: is c·sgn(W) + |W|^½ G |W|^½ of the right inertia?

G = PᵀD⁻¹P comes from a pass over the rows; the questions about it are put here, on the host, and by tensors where they
are (`torch.inertia`). See `hashlearn.bqp.sdr.certificate` for what follows from the answers.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg as la

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import all_blas_threads

EPS = float(np.finfo(np.float64).eps)
# From this rank on the factorisation of a low-rank certificate uses every core: it says yes or no, in any order.
ALL_THREADS = 400


class Inertia(Protocol):
    """H = |W|^½ G |W|^½ and the signs of W."""

    trace: float

    def holds(self, c: float, margin: float) -> bool:
        """Whether c·sgn(W) + H' provably has no more than n₊(W) positive eigenvalues, for all H' within ``margin``."""

    def matrix(self) -> FloatArray:
        """H, on the host."""


class Proof(Protocol):
    """PᵀD⁻¹P, wherever it is, and what is known about its rounding."""

    @property
    def total(self) -> float:
        """≥ Σd."""

    @property
    def rounding(self) -> float:
        """The Gram matrix is off by at most this · its trace, as a spectral norm."""

    def inertia(self, weights: FloatArray) -> Inertia:
        """The question, for these weights."""


class ProofGram(NamedTuple):
    """`Proof` on the host."""

    gram: FloatArray  # rank × rank
    total: float
    rounding: float

    def inertia(self, weights: FloatArray) -> Inertia:
        """The question, for these weights."""
        return HostInertia(self.gram, weights)


class HostInertia:
    """With p columns of positive weight first, M = cI + H₊₊ ≻ 0 always holds, so the statement is that the Schur
    complement cI − H₋₋ + BᵀM⁻¹B with B = H₊₋ is positive definite; ``margin`` moves every eigenvalue against us (Weyl).

    M may be so ill-conditioned that M⁻¹B is mostly rounding. But BᵀM⁻¹B ⪰ XᵀB + BᵀX − XᵀMX for *any* X, because
    (X − M⁻¹B)ᵀ M (X − M⁻¹B) ⪰ 0. So what is computed for M⁻¹B is only a proposal: a poor one weakens the bound and
    never breaks it. What is left are the roundings of products, at most their length times EPS times the norms of
    their factors (Higham 2002, section 3.1).
    """

    def __init__(self, gram: FloatArray, weights: FloatArray) -> None:
        scale = np.sqrt(np.abs(weights))
        self._H = gram * scale[:, None] * scale
        self._positive = weights > 0
        self.trace = float(np.trace(self._H))

    def matrix(self) -> FloatArray:
        """H itself."""
        return self._H

    def holds(self, c: float, margin: float) -> bool:
        """By a Cholesky factorisation that runs to its end."""
        H, positive = self._H, self._positive
        B, schur = H[np.ix_(positive, ~positive)], -H[np.ix_(~positive, ~positive)]
        slack = 0.0
        with all_blas_threads() if len(H) > ALL_THREADS else nullcontext():
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
    return bool(np.isfinite(factor.diagonal()).all())  # some libraries run to the end over a NaN
