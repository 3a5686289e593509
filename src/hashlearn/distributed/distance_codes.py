"""Codes that preserve distances: unit rows of the centred features, in their first principal directions, then descent.

Two passes over the features find mean and directions, a third makes the factor F (rank columns of float32), and from
then on only F and codes are touched: rank · 4 + n_bits / 8 bytes a row and pass.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.progress import ProgressCallback
from hashlearn.distributed.block_cache import Recipe
from hashlearn.distributed.descent import BlockDescent
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.moments import Moments, folded, plus, tree, unit_gram
from hashlearn.distributed.sampling import drawn, taken_factor
from hashlearn.distributed.starts import begin, begun_total, factor_moments, learned_start
from hashlearn.inference.report import InferenceReport

SAMPLE_ROWS = 10_000


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
) -> tuple[list[NDArray[np.uint8]], InferenceReport]:
    """Packed codes of every block, and what happened."""
    gram = executor.reduce_rows(unit_gram, plus, moments.mean)
    directions = np.linalg.eigh(gram)[1][:, ::-1][:, :n_components]
    directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(n_components)])
    recipe = Recipe(secrets.token_hex(8), moments.mean, directions, executor.memory_each())
    try:
        sums, squares = tree(lambda parts: folded(plus, parts), executor.keep(recipe, factor_moments))
        sampled = drawn(executor.table, SAMPLE_ROWS, rng)
        parts = executor.map_kept(taken_factor, -1, None, None, each=[(index,) for index in sampled])
        sample = np.concatenate(parts).astype(np.float64)
        mean = sums / executor.table.n
        scatter = squares - executor.table.n * np.outer(mean, mean)
        start = learned_start(init, sample, mean, scatter, n_bits, rng)
        begun = executor.map_kept(begin, -1, None, None, start)
        descent = BlockDescent(
            executor,
            [part.codes for part in begun],
            *begun_total(begun),
            target_square=float(np.sum(squares * squares)),
            sample=sample,
            sampled=sampled,
        )
        report = descent.run(solver, n_sweeps, rng, progress, certify)
    finally:
        executor.close()
    return descent.codes, report
