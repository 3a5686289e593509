"""Codes that preserve distances: unit rows of the centered features, in their first principal directions, then descent.

Two passes over the features find mean and directions, a third makes the factor F (rank columns of float32), and from
then on only F and codes are touched: rank · 4 + n_bits / 8 bytes a row and pass. The start is the best ITQ rotation of
a sample, applied to all rows by one small matrix.

Blocks may be on any worker. For a pass a worker gets the packed codes of a block and vectors as long as the rank, and
one bit for each row comes back. The caller keeps the codes of all blocks, and a sample of rows. Each block assumes that
the other blocks make the same flips as it does, and counts its own ``repeats`` times, the number of blocks. Otherwise
all blocks would correct the same error at once and overshoot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add, getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bits import unpack_signs
from hashlearn.bqp.flips import flip_rows, low_rank_thresholds
from hashlearn.bqp.rows import ProofGram
from hashlearn.core.arrays import FloatArray
from hashlearn.core.progress import ProgressCallback
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.moments import Moments, gram, panels, plus, unit_gram
from hashlearn.inference.descent import InferenceReport, countdown, descend
from hashlearn.inference.passes import (
    SAMPLED_ROWS,
    BitsByPasses,
    Outcome,
    Proposal,
    Step,
    proof_sums_of,
    signs_and_products,
)
from hashlearn.inference.presets import as_passes, described, new_report
from hashlearn.inference.starts import best_rotation
from hashlearn.linalg.principal_axes import filled_up, top_directions
from hashlearn.linalg.unit_rows import scale_to_unit

ROTATIONS = 8
STARTS = ("auto", "itq", "pca")
MAX_PASSES = 4
SETTLED = 2e-3  # the passes of a block end when at most this share of its signs flipped in one


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
    unit_scatter = executor.reduce(unit_gram, plus, executor.rows, moments.mean, moments.typical_norm)
    directions = top_directions(unit_scatter, n_components)
    executor.keep(unit_factor, n_components, moments.mean, moments.typical_norm, directions)
    sums, squares = executor.reduce(factor_moments, plus, executor.factors)
    sampled = executor.table.sample(SAMPLED_ROWS, rng)
    parts = executor.map(getitem, executor.factors, each=[(index,) for index in sampled])
    sample = np.concatenate(parts).astype(np.float64)
    mean = sums / executor.table.n
    scatter = squares - executor.table.n * np.outer(mean, mean)
    start = learned_start(init, sample, mean, scatter, n_bits, rng)
    codes, products = zip(*executor.map(begin, executor.factors, *start), strict=True)
    rows = BlockRows(executor, list(codes), reduce(add, products), sample, sampled)
    passes = as_passes(solver)
    report = new_report(solver, described(passes, MAX_PASSES))
    square = float(np.sum(squares * squares))
    bits = BitsByPasses(rows, np.ones(sample.shape[1]), square, passes.on_sample(), rng)
    with countdown(time_limit) as seconds_left:
        descend(bits, report, n_sweeps, seconds_left=seconds_left, progress=progress)
    if certify:
        report.bits[-n_bits:] = [bits.certified(record, rows.proof) for record in report.bits[-n_bits:]]
    executor.close()  # the hash functions need the memory
    report.seconds = time.perf_counter() - began
    return rows.codes, report


def unit_factor(
    rows: NDArray[Any], mean: FloatArray, typical_norm: float, directions: FloatArray
) -> NDArray[np.float32]:
    """The factor of a block: unit rows in the first principal directions."""
    parts = [(scale_to_unit(panel - mean, typical_norm) @ directions).astype(np.float32) for panel in panels(rows)]
    return np.concatenate(parts)


def factor_moments(factor: NDArray[np.float32]) -> tuple[FloatArray, FloatArray]:
    """Σ f and Σ ffᵀ of a block."""
    return factor.sum(axis=0, dtype=np.float64), gram(panels(factor))


def learned_start(
    init: str, sample: FloatArray, mean: FloatArray, scatter: FloatArray, n_bits: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """A projection (rank, n_bits) and offsets, from the moments of all rows of the factor and a sample of them.

    "pca" is signs of the principal components; "itq" (and "auto") rotates them so that signs lose least, the best of
    several rotations by objective (3) on the sample.
    """
    if init not in STARTS:
        raise ValueError(f"init must be one of {', '.join(STARTS)}, got {init!r}")
    projection = filled_up(top_directions(scatter, n_bits), n_bits, rng)
    if init != "pca":
        target = bqp.LowRank(sample, np.ones(sample.shape[1]))
        projection = projection @ best_rotation((sample - mean) @ projection, target, ROTATIONS, rng)
    return projection, mean @ projection


def begin(
    factor: NDArray[np.float32], projection: FloatArray, offsets: FloatArray
) -> tuple[NDArray[np.uint8], FloatArray]:
    """The first codes of a block, packed, and [ZᵀZ, ZᵀF]. Bits are 1 where f · projection ≥ offsets."""
    width = projection.shape[1]
    products, packed = np.zeros((width, width + factor.shape[1])), []
    for panel in panels(factor):
        bits = panel @ projection >= offsets
        z = 2.0 * bits - 1.0
        products += z.T @ np.hstack([z, panel])
        packed.append(np.packbits(bits, axis=1))
    return np.concatenate(packed), products


class BlockRows:
    """`CodedRows` in blocks."""

    def __init__(
        self,
        executor: Executor,
        codes: list[NDArray[np.uint8]],
        products: FloatArray,
        sample: FloatArray,
        sampled: Sequence[NDArray[np.intp]],
    ) -> None:
        self.codes = codes  # packed, one array for each block
        self.n, self.n_bits = executor.table.n, len(products)
        self._executor, self._products = executor, products
        self._sample, self._sampled = sample, sampled
        packed = np.concatenate([block[index] for block, index in zip(codes, sampled, strict=True)])
        self._sample_codes = 2.0 * np.unpackbits(packed, axis=1, count=self.n_bits) - 1.0
        self._proposals: list[Proposal] = []

    def products(self) -> FloatArray:
        """[ZᵀZ, ZᵀF] of the codes at the start."""
        return self._products

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """The same rows every time, with the codes as they stand."""
        return np.hstack([self._sample_codes, self._sample])

    def propose(self, step: Step, check_time: Callable[[], Any]) -> list[Proposal]:
        """One proposal for each block."""
        self._proposals = self._pass(propose, step, self.n_bits, float(len(self.codes)))
        return self._proposals

    def take(self, bit: int, outcomes: list[Outcome]) -> None:
        """Write the signs of the last proposals that were agreed on."""
        first = 0
        for codes, index, proposal, outcome in zip(self.codes, self._sampled, self._proposals, outcomes, strict=True):
            if outcome is not Outcome.KEEP:
                column = np.unpackbits(proposal.columns[outcome.value], count=len(codes)).astype(bool)
                set_bit(codes, bit, column)
                self._sample_codes[first : first + len(index), bit] = 2.0 * column[index] - 1.0
            first += len(index)

    def proof(self, B: FloatArray, smallest: float) -> list[ProofGram]:
        """The sums of a proof, for each block."""
        return self._pass(block_proof, self.n_bits, B, smallest)

    def _pass(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        each = [(codes,) for codes in self.codes]
        return self._executor.map(function, self._executor.factors, *arguments, each=each)


def propose(
    factor: NDArray[np.float32], packed: NDArray[np.uint8], step: Step, n_bits: int, repeats: float
) -> Proposal:
    """Flip signs of the present bit of a block, and of the candidate if there is one."""
    codes = unpack_signs(packed, n_bits)
    present = codes[:, step.bit].copy()
    columns, products = [present.copy()], [np.zeros(len(step.weights))]
    fields = [step.weights * step.products]
    if step.candidate is not None:
        assert step.candidate_products is not None
        x = np.empty_like(present)
        products.append(signs_and_products(codes, factor, step.candidate, x))
        columns.append(x)
        fields.append(step.weights * step.candidate_products)
    limits = low_rank_thresholds(factor, step.weights[n_bits:], n_bits - 1.0)
    rows, starts = np.arange(len(codes)), [x.copy() for x in columns]
    for _ in range(MAX_PASSES):
        flips = 0
        for x, start, t, field in zip(columns, starts, products, fields, strict=True):
            flips += flip_rows(rows, codes, factor, step.weights, limits, x, start, t, field, repeats)
        if flips <= SETTLED * len(rows) * len(columns):
            break
    return Proposal(
        products[0],
        products[1] if step.candidate is not None else None,
        [int(np.count_nonzero(x != present)) for x in columns],
        columns=[np.packbits(x > 0) for x in columns],
    )


def block_proof(
    factor: NDArray[np.float32], packed: NDArray[np.uint8], n_bits: int, B: FloatArray, smallest: float
) -> ProofGram:
    """What a block adds to the proof of a bit."""
    return proof_sums_of(unpack_signs(packed, n_bits), factor, B, smallest)


def set_bit(codes: NDArray[np.uint8], bit: int, values: NDArray[np.bool_]) -> None:
    """Write one bit of every packed code, in place.

    >>> codes = np.zeros((2, 1), np.uint8)
    >>> set_bit(codes, 1, np.array([True, False]))
    >>> codes.ravel()
    array([64,  0], dtype=uint8)
    """
    mask = np.uint8(128 >> bit % 8)
    column = codes[:, bit // 8]
    column &= ~mask
    column |= np.where(values, mask, np.uint8(0))
