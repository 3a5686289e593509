"""Codes and factor in blocks that may be anywhere: in one pass vectors as long as the rank travel, and one bit a row.

The caller keeps the packed codes of all blocks, and a sample of rows with their codes. Each block assumes that the
other blocks make the same flips as it does, and counts its own ``repeats`` times, the number of blocks. Otherwise all
blocks would correct the same error at once and overshoot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.rows.numpy_flips import flip_in_order
from hashlearn.core.arrays import FloatArray
from hashlearn.distributed.block_cache import BlockState, set_bit
from hashlearn.distributed.executors import Executor
from hashlearn.inference.array_rows import signs_and_products
from hashlearn.inference.passes import Outcome, Proposal, Step
from hashlearn.inference.proofs import ProofSums, proof_sums

MAX_PASSES = 4
SETTLED = 2e-3  # the passes of a block end when at most this share of its signs flipped in one


class BlockRows:
    """`CodedRows` in blocks."""

    refreshes_products = False

    def __init__(
        self,
        executor: Executor,
        codes: list[NDArray[np.uint8]],
        products: tuple[FloatArray, FloatArray],
        sample: FloatArray,
        sampled: Sequence[NDArray[np.intp]],
    ) -> None:
        self.codes = codes  # packed, one array for each block
        self.n, self.n_bits = executor.table.n, len(products[0])
        self._executor, self._products = executor, products
        self._sample, self._sampled = sample, sampled
        packed = np.concatenate([block[index] for block, index in zip(codes, sampled, strict=True)])
        self._sample_codes = 2.0 * np.unpackbits(packed, axis=1, count=self.n_bits) - 1.0
        self._proposals: list[Proposal] = []
        self._outcomes: list[Outcome] | None = None
        self._version = 0

    def products(self) -> tuple[FloatArray, FloatArray]:
        """ZᵀZ and ZᵀF of the codes at the start."""
        return self._products

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """The same rows every time, with the codes as they stand."""
        return np.hstack([self._sample_codes, self._sample])

    def propose(self, step: Step, tick: Callable[[], Any]) -> list[Proposal]:
        """One proposal for each block."""
        self._proposals = self._pass(propose, step, self.n_bits, float(len(self.codes)))
        return self._proposals

    def take(self, bit: int, outcomes: list[Outcome]) -> None:
        """Write the chosen signs into the caller's codes; the blocks take them with the next pass."""
        first = 0
        for codes, index, proposal, outcome in zip(self.codes, self._sampled, self._proposals, outcomes, strict=True):
            if outcome is not Outcome.KEEP:
                column = np.unpackbits(proposal.columns[outcome.value], count=len(codes)).astype(bool)
                set_bit(codes, bit, column)
                self._sample_codes[first : first + len(index), bit] = 2.0 * column[index] - 1.0
            first += len(index)
        self._version += 1
        self._outcomes = outcomes

    def proof(self, bit: int, B: FloatArray, smallest: float) -> list[ProofSums]:
        """The sums of a proof, for each block."""
        return self._pass(block_proof, self.n_bits, bit, B, smallest)

    def _pass(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return self._executor.map_states(function, self._version, self._outcomes, self.codes, *arguments)


def propose(state: BlockState, step: Step, n_bits: int, repeats: float) -> Proposal:
    """Flip signs of the present bit of a block, and of the candidate if there is one."""
    codes, factor = state.signs(n_bits), state.factor()
    present = codes[:, step.bit].copy()
    columns, products = [present.copy()], [np.zeros(len(step.weights))]
    fields = [step.weights * step.products]
    if step.candidate is not None:
        assert step.candidate_products is not None
        x = np.empty_like(present)
        products.append(signs_and_products(codes, factor, step.candidate, x))
        columns.append(x)
        fields.append(step.weights * step.candidate_products)
    squares = np.einsum("ij,ij->i", factor, factor, dtype=np.float64)
    diagonal = step.weights[n_bits] * squares + (n_bits - 1.0)
    rows, starts = np.arange(len(codes)), [x.copy() for x in columns]
    for _ in range(MAX_PASSES):
        flips = 0
        for x, start, t, field in zip(columns, starts, products, fields, strict=True):
            flips += flip_in_order(codes, factor, rows, step.weights, diagonal, x, start, t, field, repeats)
        if flips <= SETTLED * len(rows) * len(columns):
            break
    bits = [x > 0 for x in columns]
    state.pending = (step.bit, bits)
    return Proposal(
        products[0],
        products[1] if step.candidate is not None else None,
        [int(np.count_nonzero(x != present)) for x in columns],
        columns=[np.packbits(column) for column in bits],
    )


def block_proof(state: BlockState, n_bits: int, bit: int, B: FloatArray, smallest: float) -> ProofSums:
    """What a block adds to the proof of a bit."""
    return proof_sums(state.signs(n_bits), state.factor(), bit, B, smallest)
