"""Codes that preserve distances: unit rows of the centered features, in their first principal directions, then descent.

Two passes over the features find mean and directions, a third makes the factor F (rank columns of float32), and from
then on only F and codes are touched: rank · 4 + n_bits / 8 bytes a row and pass.
"""

from __future__ import annotations

import secrets
import time

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.progress import ProgressCallback
from hashlearn.distributed.block_cache import FactorSpec
from hashlearn.distributed.block_rows import MAX_PASSES, BlockRows
from hashlearn.distributed.block_starts import begin, begun_total, factor_moments, learned_start
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.moments import Moments, folded, plus, tree, unit_gram
from hashlearn.distributed.sampling import drawn, taken_factor
from hashlearn.inference.descent import descend
from hashlearn.inference.passes import SAMPLED_ROWS, BitsByPasses
from hashlearn.inference.presets import as_passes, described
from hashlearn.inference.report import InferenceReport
from hashlearn.linalg.principal_axes import top_directions


def distance_codes(
    executor: Executor,
    moments: Moments,
    n_bits: int,
    *,
    n_components: int,
    init: str,
    solver: str | bqp.Solver,
    n_sweeps: int,
    rng: np.random.Generator,
    progress: ProgressCallback | None = None,
    certify: bool = False,
    time_limit: float | None = None,
) -> tuple[list[NDArray[np.uint8]], InferenceReport]:
    """Packed codes of every block, and what happened."""
    began = time.perf_counter()
    gram = executor.reduce_rows(unit_gram, plus, moments.mean, moments.typical_norm)
    directions = top_directions(gram, n_components)
    spec = FactorSpec(secrets.token_hex(8), moments.mean, moments.typical_norm, directions, executor.memory_each())
    try:
        sums, squares = tree(lambda parts: folded(plus, parts), executor.keep(spec, factor_moments))
        sampled = drawn(executor.table, SAMPLED_ROWS, rng)
        parts = executor.map_states(taken_factor, -1, None, None, each=[(index,) for index in sampled])
        sample = np.concatenate(parts).astype(np.float64)
        mean = sums / executor.table.n
        scatter = squares - executor.table.n * np.outer(mean, mean)
        start = learned_start(init, sample, mean, scatter, n_bits, rng)
        begun = executor.map_states(begin, -1, None, None, start)
        rows = BlockRows(executor, [part.codes for part in begun], begun_total(begun), sample, sampled)
        passes = as_passes(solver)
        report = InferenceReport.of(solver, passes, described(passes, MAX_PASSES))
        bits = BitsByPasses(
            rows, np.ones(sample.shape[1]), float(np.sum(squares * squares)), passes.on_sample(len(sample)), rng
        )
        descend(bits, report, n_sweeps, time_limit=time_limit, progress=progress)
        if certify:
            report.bits[-n_bits:] = [bits.certified(record) for record in report.bits[-n_bits:]]
        report.seconds = time.perf_counter() - began
    finally:
        executor.close()
    return rows.codes, report
