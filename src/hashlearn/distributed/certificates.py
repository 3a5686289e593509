"""Proven lower bounds on the bits of codes in blocks: weak duality with weights from a sample, verified on all rows.

Any d > 0 gives a bound (see `hashlearn.bqp.sdr.certificate`); a good one is d_i = ‖p_iᵀB‖ with B = W T of the solved
relaxation, and B of a sample of rows is nearly that of all of them. One pass a bit sums PᵀD⁻¹P, rank × rank numbers.
"""

from __future__ import annotations

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.incumbent import Run
from hashlearn.bqp.rows.inertia import ProofGram
from hashlearn.bqp.sdr.certificate import EPS, proven_bound
from hashlearn.bqp.sdr.compressed import relax_low_rank
from hashlearn.bqp.sdr.relaxation import Tolerance
from hashlearn.core.arrays import FloatArray
from hashlearn.distributed.block_cache import Kept
from hashlearn.distributed.moments import PANEL_ROWS

TOLERANCE = 1e-3
SMALLEST = 1e-9  # of the mean of d


def bit_bound(weights: FloatArray, bit: int, n: int, sums: list[tuple[FloatArray, float]]) -> float:
    """The bound that the blocks' `proof_sums` prove for ``bit``; ``weights`` are those of [Z, F]."""
    others = np.arange(len(weights)) != bit
    gram = np.sum([part[0] for part in sums], axis=0)[np.ix_(others, others)]
    total = sum(part[1] for part in sums) * (1.0 + n * EPS)
    rounding = (PANEL_ROWS + n / PANEL_ROWS + len(sums) + 16) * EPS
    return proven_bound(ProofGram(gram, total, rounding), weights[others]).bound


def sample_factor(A: bqp.LowRank, rng: np.random.Generator) -> FloatArray:
    """B (rank × k) of the relaxation of the sample's problem."""
    tolerance = Tolerance(TOLERANCE, A.scale(), max_rounds=30)
    relaxation = relax_low_rank(A, tolerance, rank=8, rng=rng, run=Run(A))
    assert relaxation.low_rank_factor is not None
    return relaxation.low_rank_factor


def proof_sums(kept: Kept, bit: int, n_bits: int, B: FloatArray, floor: float) -> tuple[FloatArray, float]:
    """PᵀD⁻¹P (with the bit's own column, which is left out later) and Σd of a block."""
    assert kept.codes is not None
    factor, total = kept.factor(), 0.0
    gram = np.zeros((n_bits + factor.shape[1],) * 2)
    for first in range(0, len(factor), PANEL_ROWS):
        bits = np.unpackbits(kept.codes[first : first + PANEL_ROWS], axis=1, count=n_bits)
        P = np.hstack([2.0 * bits - 1.0, factor[first : first + PANEL_ROWS].astype(np.float64)])
        d = np.maximum(np.linalg.norm(np.delete(P, bit, axis=1) @ B, axis=1), floor)
        Q = P / np.sqrt(d)[:, None]
        gram += Q.T @ Q
        total += float(d.sum())
    return gram, total
