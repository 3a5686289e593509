"""The small dense algebra of a low-rank certificate: is c·sgn(W) + |W|^½ G |W|^½ of the right inertia?

G = PᵀD⁻¹P comes from a pass over the rows; the questions about it are put here, on the host, and by tensors where they
are (`torch_proofs`). See `hashlearn.bqp.sdr.certificate` for what follows from the answers.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg as la

from hashlearn.bqp.threads import FloatArray, all_blas_threads

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
    """With p columns of positive weight first, cI + H₊₊ ≻ 0 always holds, so the statement is that the Schur complement
    cI − H₋₋ + H₋₊ (cI + H₊₊)⁻¹ H₊₋ is positive definite; ``margin`` moves every eigenvalue against us (Weyl).
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
        Hpp, Hpm, Hmm = H[np.ix_(positive, positive)], H[np.ix_(positive, ~positive)], H[np.ix_(~positive, ~positive)]
        schur = (c - margin) * np.eye(len(Hmm)) - Hmm
        with all_blas_threads() if len(H) > ALL_THREADS else nullcontext():
            if positive.any():
                factor = la.cho_factor((c + margin) * np.eye(len(Hpp)) + Hpp, check_finite=False)
                schur += Hpm.T @ la.cho_solve(factor, Hpm, check_finite=False)
            return is_positive_definite(schur)


def is_positive_definite(S: FloatArray) -> bool:
    """Whether a Cholesky factorisation of S, which is overwritten, runs to its end."""
    try:
        la.cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    except la.LinAlgError:
        return False
    return True
