"""The relaxation (10) of a low-rank problem to a loose gap, for many rows on a device.

Sweeps over a sample of rows settle after one or two dozen. Their T = PᵀV, scaled up, has a gap of some
2 to 6 · rank / (rows in the sample) on all rows, measured for ranks up to 111. So all rows are read only twice: for the
norms d of T, and for the certificate from d. If the gap is too wide, the next sample is larger. There are no Newton
steps: stopped early, they often end at points (probably saddles) whose d proves little.
"""

from __future__ import annotations

import numpy as np

from hashlearn.bqp.incumbent import Run
from hashlearn.bqp.operators import LowRank
from hashlearn.bqp.sdr.certificate import low_rank_bound
from hashlearn.bqp.sdr.compressed import sweep
from hashlearn.bqp.sdr.relaxation import Relaxation, Tolerance
from hashlearn.core.arrays import FloatArray

LOOSE = 5e-3  # smaller gaps need more than samples
GROWTH = 4  # factor by which the sample grows from round to round
FIRST_SWEEPS, LATER_SWEEPS = 20, 8
SETTLED = 1.5e-4  # mean square movement of a row
LEVELLED = 0.05  # of their mean is added to the norms, because norms that are small by chance weaken the bound
SWEPT_ROWS = 20_000  # the sample for rows whose ``swept_rows`` is None


def relax_on_samples(
    A: LowRank, tolerance: Tolerance, rank: int, rng: np.random.Generator, run: Run, certify: bool = True
) -> Relaxation:
    """Like `relax_low_rank`, from unit rows of a random T in the columns of negative weight.

    Without ``certify`` only one sample is swept, and nothing is proven.
    """
    rows = A.rows
    attracts = A.weights < 0.0
    T = rng.standard_normal((A.rank, rank))
    T[~attracts & attracts.any()] = 0.0
    sweeps = FIRST_SWEEPS
    count = rows.swept_rows or SWEPT_ROWS
    bound = -np.inf
    for rounds_left in reversed(range(tolerance.max_rounds)):
        T = _swept(A, T, count, sweeps, rng, run)
        if not certify:
            value = _value(A, T)  # an estimate from the sample
            break
        image, norms = rows.image(A.weights[:, None] * T)
        value = _value(A, image)
        run.tick("certificate")
        d = norms + LEVELLED * norms.mean()
        bound = max(bound, low_rank_bound(A, d, tolerance.enough(value), value, with_direction=False).bound)
        run.offer_bound(bound)
        if tolerance.met(value, bound) or not rounds_left:
            break
        T, count, sweeps = image, GROWTH * count, LATER_SWEEPS
    return Relaxation(
        A, value, bound, T.shape[1], "cholesky" if certify else "none", low_rank_factor=A.weights[:, None] * T
    )


def _value(A: LowRank, T: FloatArray) -> float:
    return float(A.weights @ np.einsum("jc,jc->j", T, T))


def _swept(A: LowRank, T: FloatArray, count: int, sweeps: int, rng: np.random.Generator, run: Run) -> FloatArray:
    """T after sweeps over ``count`` rows from the unit rows of T, scaled up to all rows."""
    sample = A.rows.sample(count, rng)
    mixing = sample.mixing(A.weights, A.weights[:, None] * T)
    return sweep(mixing, run, sweeps, SETTLED) * (A.n / sample.n)
