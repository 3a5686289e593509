"""Where distributed codes begin: the best ITQ rotation of a sample, applied to all rows by one small matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.distributed.block_cache import BlockState
from hashlearn.distributed.moments import added, panels
from hashlearn.inference.starts import best_rotation
from hashlearn.linalg.principal_axes import filled_up, top_directions

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
    return factor.sum(axis=0, dtype=np.float64), added(panel.T @ panel for panel in panels(factor))


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
    codes, first = np.empty((len(factor), -(-width // 8)), np.uint8), 0
    among, cross = np.zeros((width, width)), np.zeros((width, factor.shape[1]))
    for panel in panels(factor):
        bits = panel @ start.projection >= start.offsets
        z = 2.0 * bits - 1.0
        among += z.T @ z
        cross += z.T @ panel
        codes[first : first + len(panel)] = np.packbits(bits, axis=1)
        first += len(panel)
    state.codes, state.version, state.pending = codes.copy(), 0, None
    return Begun(codes, among, cross)


def begun_total(parts: list[Any]) -> tuple[FloatArray, FloatArray]:
    """ZᵀZ and ZᵀF over all blocks, in their order."""
    return added(iter([part.among.copy() for part in parts])), added(iter([part.cross.copy() for part in parts]))
