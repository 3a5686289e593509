"""What the names of solvers mean inside inference, where a bit is one of many and starts from what it was.

The bits around a bit change after it, so a name stands for less work than in `bqp.solve`. An object is taken as it is.
Of many rows in memory "local_search" and "al" stand for still less: see `hashlearn.inference.many_rows`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hashlearn import bqp

# A bit ends 1 to 10 % above its bound: a relaxation solved to 1e-4, or to 3e-2 where products are dear and an exact
# certificate costs n³, rounds to bits as good as one solved to 1e-6 (tests/inference/test_presets.py).
LOW_RANK_SDR = bqp.SemidefiniteRelaxation(tol=1e-4)
# Many rows on a device: relaxations of samples, fewer draws and short descents end where tight ones do, with gaps wider
# by 1 %; one certificate a bit, since each costs as much as ten passes (docs/gpu.md).
MANY_ROWS = 10_000
DEVICE_SDR = bqp.SemidefiniteRelaxation(tol=1e-1, rank=16, n_draws=16, polish=1, max_iter=1, max_flip_passes=3)
UNPROVEN_DEVICE_SDR = replace(DEVICE_SDR, certify=False)
SPARSE_SDR = bqp.SemidefiniteRelaxation(tol=3e-2, rank=4, proof_limit=2000)
# One descent from the bit as it stands, by sweeps of single flips, or by tabu moves where n allows a dense A.
SWEEPS = bqp.LocalSearch(n_starts=1, max_iter=30)
LARGEST_TABU = 2048
# Labels: few distinct rows are left after a sweep, and the search's own defaults enumerate them.
FEW_RANKS = 64
LOOKED_AT = 1024


def for_bits(solver: str | bqp.Solver, target: bqp.Operator, last: bool = True) -> str | bqp.Solver:
    """The solver that ``solver`` stands for when bits of codes for ``target`` are inferred.

    Not in the ``last`` sweep bits will be solved again, and the bound of a problem that then no longer exists is not
    proven where that would cost much.
    """
    if solver == "sdr":
        if not isinstance(target, bqp.LowRank):
            return SPARSE_SDR
        if target.rows.on_host or target.n <= MANY_ROWS:
            return LOW_RANK_SDR
        return DEVICE_SDR if last else UNPROVEN_DEVICE_SDR
    if solver == "local_search" and not has_few_distinct_rows(target):
        return SWEEPS if target.n > LARGEST_TABU else bqp.LocalSearch(n_starts=1, max_iter=10 * target.n)
    return solver


def has_few_distinct_rows(target: bqp.Operator) -> bool:
    """Whether rows of a low-rank target repeat, as those of labels do; judged by some of them."""
    if not isinstance(target, bqp.LowRank) or target.rank > FEW_RANKS:
        return False
    seen = target.rows.take(np.arange(0, target.n, -(-target.n // LOOKED_AT)))
    return 2 * len(np.unique(seen, axis=0)) <= len(seen)
