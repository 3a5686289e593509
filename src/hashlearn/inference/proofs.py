"""Proven lower bounds on bits that were found by passes: weak duality with weights from a sample, verified on all rows.

Any d > 0 gives a bound (see `hashlearn.bqp.sdr.certificate`). A good choice is d_i = ‖p_iᵀB‖ with B = W T of the solved
relaxation; B of a sample of rows is nearly that of all of them. One pass a bit sums PᵀD⁻¹P, rank × rank numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bqp.rows import ProofGram
from hashlearn.bqp.sdr.certificate import low_rank_bound
from hashlearn.bqp.sdr.low_rank import relax_low_rank
from hashlearn.bqp.sdr.rounding import Tolerance
from hashlearn.bqp.state import SolveState
from hashlearn.core.arrays import EPS, FloatArray

TOLERANCE = 1e-3
SMALLEST = 1e-9  # entries of d are at least this share of their mean
PANEL_ROWS = 4096


class ProofSums(NamedTuple):
    """Sums over some rows."""

    gram: FloatArray  # PᵀD⁻¹P, with the column of the bit itself
    total: float  # Σd


def sample_factor(A: bqp.Structured, rng: np.random.Generator) -> tuple[FloatArray, float]:
    """B (rank × k) of the relaxation of the sample's problem, and the smallest d that is used."""
    tolerance = Tolerance(TOLERANCE, A.scale(), max_rounds=30)
    B = relax_low_rank(A, tolerance, rank=8, rng=rng, state=SolveState(A)).low_rank_factor
    assert B is not None
    return B, max(SMALLEST * float(np.linalg.norm(A.P @ B, axis=1).mean()), 1e-300)


def proof_sums(
    codes: NDArray[np.int8], factor: NDArray[np.floating], bit: int, B: FloatArray, smallest: float
) -> ProofSums:
    """What the rows [codes, factor] add to the proof of ``bit``."""
    total = 0.0
    gram = np.zeros((codes.shape[1] + factor.shape[1],) * 2)
    for first in range(0, len(factor), PANEL_ROWS):
        rows = slice(first, first + PANEL_ROWS)
        P = np.hstack([codes[rows].astype(np.float64), factor[rows].astype(np.float64)])
        d = np.maximum(np.linalg.norm(np.delete(P, bit, axis=1) @ B, axis=1), smallest)
        Q = P / np.sqrt(d)[:, None]
        gram += Q.T @ Q
        total += float(d.sum())
    return ProofSums(gram, total)


def bit_bound(weights: FloatArray, bit: int, n: int, sums: list[ProofSums]) -> float:
    """The bound for ``bit`` that these sums over all rows prove; ``weights`` are those of [Z, F]."""
    others = np.arange(len(weights)) != bit
    gram = np.sum([part.gram for part in sums], axis=0)[np.ix_(others, others)]
    total = sum(part.total for part in sums) * (1.0 + n * EPS)
    rounding = (PANEL_ROWS + n / PANEL_ROWS + len(sums) + 16) * EPS
    return low_rank_bound(ProofGram(gram, total, rounding), weights[others]).bound
