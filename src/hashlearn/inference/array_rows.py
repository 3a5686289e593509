"""Codes as int8 beside the target's factor, in memory: the rows of P = [Z, F], and single flips over all of them.

`flips.flip_passes` flips: no xᵀAx rises, and the number of threads changes nothing. A pass reads n (8 · rank + n_bits)
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bqp.flips import dot, flip_passes, low_rank_thresholds, row_blocks
from hashlearn.bqp.state import OutOfTime
from hashlearn.core.arrays import FloatArray
from hashlearn.inference.passes import SAMPLED_ROWS, Outcome, Proposal, Step
from hashlearn.inference.proofs import ProofSums, proof_sums

Signs = NDArray[np.int8]

MAX_PASSES = 12
SETTLED = 3e-4  # the passes end when at most this share of the signs flipped in one


class ArrayRows:
    """`CodedRows` of a low-rank target whose factor is a NumPy array."""

    refreshes_products = True

    def __init__(self, target: bqp.Structured, start: Any) -> None:
        self.codes: Signs = np.array(start, dtype=np.int8, order="C")
        if not np.array_equal(np.abs(self.codes), np.ones_like(self.codes)):
            raise ValueError("start must hold only -1 and +1")
        self.factor = target.P
        self.n, self.n_bits = self.codes.shape
        self._limits = low_rank_thresholds(target.P, -float(self.n_bits) * target.weights, self.n_bits - 1.0)
        self._pending: Signs = np.empty((0, 0), np.int8)  # proposed signs, a row each

    def products(self) -> tuple[FloatArray, FloatArray]:
        """ZᵀZ and ZᵀF."""

        def block(a: int, b: int) -> tuple[FloatArray, FloatArray]:
            Z = self.codes[a:b].astype(np.float64)
            return Z.T @ Z, Z.T @ self.factor[a:b]

        among, cross = np.zeros((self.n_bits, self.n_bits)), np.zeros((self.n_bits, self.factor.shape[1]))
        for part in row_blocks(block, 0, self.n):
            among += part[0]
            cross += part[1]
        return among, cross

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Some rows of P, drawn anew for every bit."""
        index = np.sort(rng.choice(self.n, min(self.n, SAMPLED_ROWS), replace=False))
        return np.hstack([self.codes[index].astype(np.float64), self.factor[index]])

    def propose(self, step: Step, check_time: Callable[[], Any]) -> list[Proposal]:
        """One proposal for all rows."""
        columns, products = [self.codes[:, step.bit].copy()], [step.products.copy()]
        if step.candidate is not None:
            x, t = self._signs(step.candidate)
            columns, products = [*columns, x], [*products, t]
        X, T = np.stack(columns), np.stack(products)
        in_time = True
        try:
            flip_passes(self.codes, self.factor, step.weights, self._limits, X, T, check_time, MAX_PASSES, SETTLED)
        except OutOfTime:
            in_time = False
        self._pending = X
        changed = [int(np.count_nonzero(x != columns[0])) for x in X]
        return [Proposal(T[0] - step.products, T[1] if len(T) > 1 else None, changed, in_time)]

    def take(self, bit: int, outcomes: list[Outcome]) -> None:
        """Write the proposed signs that were chosen."""
        if outcomes[0] is not Outcome.KEEP:
            self.codes[:, bit] = self._pending[outcomes[0].value]

    def proof(self, bit: int, B: FloatArray, smallest: float) -> list[ProofSums]:
        """The sums of a proof, in one piece."""
        return [proof_sums(self.codes, self.factor, bit, B, smallest)]

    def _signs(self, q: FloatArray) -> tuple[Signs, FloatArray]:
        """x = sgn(P q) and Pᵀx, in one read."""
        x, t = np.empty(self.n, np.int8), np.zeros(len(q))
        for part in row_blocks(
            lambda a, b: signs_and_products(self.codes[a:b], self.factor[a:b], q, x[a:b]), 0, self.n
        ):
            t += part
        return x, t


@njit(cache=True, nogil=True)
def signs_and_products(codes, factor, q, x):  # type: ignore[no-untyped-def]
    """Write sgn(P q) into x; returns Pᵀx."""
    n_bits, rank = codes.shape[1], factor.shape[1]
    t = np.zeros(n_bits + rank)
    of_codes, of_factor = q[:n_bits], q[n_bits:]
    for i in range(codes.shape[0]):
        sign = -1.0 if dot(codes[i], of_codes) + dot(factor[i], of_factor) < 0.0 else 1.0
        x[i] = sign
        for j in range(n_bits):
            t[j] += sign * codes[i, j]
        for j in range(rank):
            t[n_bits + j] += sign * factor[i, j]
    return t
