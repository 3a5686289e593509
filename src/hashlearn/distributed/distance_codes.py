"""Codes that preserve distances: unit rows of the centered features, in their first principal directions, then descent.

Two passes over the features find mean and directions, a third makes the factor F (rank columns of float32), and from
then on only F and codes are touched: rank · 4 + n_bits / 8 bytes a row and pass.
"""

from __future__ import annotations

import secrets
import time
from functools import partial, reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.progress import ProgressCallback
from hashlearn.distributed.block_cache import BlockState, FactorSpec
from hashlearn.distributed.block_rows import MAX_PASSES, BlockRows
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.moments import Moments, gram, panels, plus, tree, unit_gram
from hashlearn.inference.descent import descend
from hashlearn.inference.passes import SAMPLED_ROWS, BitsByPasses
from hashlearn.inference.presets import as_passes, described
from hashlearn.inference.report import InferenceReport
from hashlearn.inference.starts import best_rotation
from hashlearn.linalg.principal_axes import filled_up, top_directions


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
    unit_scatter = executor.reduce_rows(unit_gram, plus, moments.mean, moments.typical_norm)
    directions = top_directions(unit_scatter, n_components)
    spec = FactorSpec(secrets.token_hex(8), moments.mean, moments.typical_norm, directions, executor.memory_each())
    try:
        sums, squares = tree(partial(reduce, plus), executor.keep(spec, factor_moments))
        sampled = executor.table.drawn(SAMPLED_ROWS, rng)
        parts = executor.map_states(taken_factor, -1, None, None, each=[(index,) for index in sampled])
        sample = np.concatenate(parts).astype(np.float64)
        mean = sums / executor.table.n
        scatter = squares - executor.table.n * np.outer(mean, mean)
        start = learned_start(init, sample, mean, scatter, n_bits, rng)
        begun = executor.map_states(begin, -1, None, None, start)
        codes, among, cross = zip(*begun, strict=True)
        rows = BlockRows(executor, list(codes), (reduce(add, among), reduce(add, cross)), sample, sampled)
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


ROTATIONS = 8
STARTS = ("auto", "itq", "pca")


class Start(NamedTuple):
    """Bits are 1 where f · projection ≥ offsets, for rows f of the factor."""

    projection: FloatArray  # (rank, n_bits)
    offsets: FloatArray


class Begun(NamedTuple):
    """Of one block: packed codes, ZᵀZ and ZᵀF."""

    codes: NDArray[np.uint8]
    among: FloatArray
    cross: FloatArray


def factor_moments(state: BlockState) -> tuple[FloatArray, FloatArray]:
    """Σ f and Σ ffᵀ of a block."""
    factor = state.factor()
    return factor.sum(axis=0, dtype=np.float64), gram(panels(factor))


def taken_factor(state: BlockState, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """Some rows of a block's factor."""
    return state.factor()[rows]


def learned_start(
    init: str, sample: FloatArray, mean: FloatArray, scatter: FloatArray, n_bits: int, rng: np.random.Generator
) -> Start:
    """From the moments of all rows of the factor and a sample of them.

    "pca" is signs of the principal components; "itq" (and "auto") rotates them so that signs lose least, the best of
    several rotations by objective (3) on the sample.
    """
    if init not in STARTS:
        raise ValueError(f"init must be one of {', '.join(STARTS)}, got {init!r}")
    projection = filled_up(top_directions(scatter, n_bits), n_bits, rng)
    if init != "pca":
        target = bqp.LowRank(sample, np.ones(sample.shape[1]))
        projection = projection @ best_rotation((sample - mean) @ projection, target, ROTATIONS, rng)
    return Start(projection, mean @ projection)


def begin(state: BlockState, start: Start) -> Begun:
    """Give a block its first codes."""
    factor, width = state.factor(), start.projection.shape[1]
    among, cross, packed = np.zeros((width, width)), np.zeros((width, factor.shape[1])), []
    for panel in panels(factor):
        bits = panel @ start.projection >= start.offsets
        z = 2.0 * bits - 1.0
        among += z.T @ z
        cross += z.T @ panel
        packed.append(np.packbits(bits, axis=1))
    codes = np.concatenate(packed)
    state.codes, state.version, state.pending = codes.copy(), 0, None
    return Begun(codes, among, cross)
