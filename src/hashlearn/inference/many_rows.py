"""Bits of many rows in memory: each bit is a few passes over all rows, and no copy of the target's factor is made.

Everything a bit's problem asks about all rows is t = Pᵀx, a row of [ZᵀZ, ZᵀF], which is kept. "local_search" flips
single signs of the bit as it stands. "al" is solved on a sample of rows (`sampled_bit`), extended to all rows, flipped
in the same passes, and replaces the bit only if it ends lower.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.incumbent import OutOfTime
from hashlearn.bqp.merging import merge_identical_rows
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.inference.bit_problem import frobenius_square, objective_of_products
from hashlearn.inference.report import BitRecord
from hashlearn.inference.row_flips import CodedRows, flip_rows
from hashlearn.inference.sampled_bit import SAMPLED_ROWS, estimated_products

MANY_ROWS = 20_000
BY_PASSES = ("local_search", "al")
LOOKED_AT = 10_000


def bits_by_passes(
    target: bqp.Operator, start: Any, solver: str | bqp.Solver, rng: np.random.Generator
) -> ManyRows | None:
    """The bits, if they are found as here: of many rows of a NumPy factor, hardly any of them identical; else None."""
    if not (isinstance(solver, str) and solver in BY_PASSES and isinstance(target, bqp.LowRank)):
        return None
    if target.n <= MANY_ROWS or not isinstance(target.rows, NumpyRows):
        return None
    some = target.rows.take(np.arange(0, target.n, -(-target.n // LOOKED_AT)))
    if merge_identical_rows(bqp.LowRank.unchecked(some, -np.abs(target.weights))).groups is not None:
        return None
    return ManyRows(target, start, solver, rng)


class ManyRows:
    """The codes of all rows and the small products that say everything else about them."""

    leaves_proofs_for_last = False

    def __init__(self, target: bqp.LowRank, start: Any, solver: str, rng: np.random.Generator) -> None:
        codes = np.array(start, dtype=np.int8, order="C")
        if not np.array_equal(np.abs(codes), np.ones_like(codes)):
            raise ValueError("start must hold only -1 and +1")
        self.n, self.n_bits = codes.shape
        self._rows = CodedRows(codes, target.P)
        self._target_weights = target.weights
        self._solver = None if solver == "local_search" else solver
        self._rng = rng
        self._target_square = frobenius_square(target)
        self._weights = np.r_[np.ones(self.n_bits), -float(self.n_bits) * target.weights]
        self._diagonal = target.rows.diagonal(self._weights[self.n_bits :]) + (self.n_bits - 1.0)

    @property
    def codes(self) -> Any:
        """As int8."""
        return self._rows.codes

    def objective(self) -> float:
        """Eq. (3) over n², from products computed afresh, which the next bits go on from."""
        self._among, self._cross = self._rows.products()
        return objective_of_products(self._among, self._cross.T, self._target_weights, self._target_square, self.n)

    def one_bit(self, sweep: int, bit: int, seconds_left: float, last: bool) -> BitRecord:
        """Lower the value of one bit, or leave it; nothing is proven in the ``last`` sweep or before."""
        began = time.perf_counter()
        weights = self._weights.copy()
        weights[bit] = 0.0
        old = self.codes[:, bit].copy()
        X, T = old[None].copy(), np.r_[self._among[bit], self._cross[bit]][None]
        before = float(weights @ (T[0] * T[0]))
        status = bqp.Status.CONVERGED

        def tick() -> None:
            if time.perf_counter() - began > seconds_left:
                raise OutOfTime

        try:
            if self._solver is not None:
                x, t = self._candidate(weights, bit, seconds_left)
                X, T = np.stack([X[0], x]), np.stack([T[0], t])
            flip_rows(self._rows, weights, self._diagonal, X, T, tick)
        except OutOfTime:
            status = bqp.Status.TIME_LIMIT
        values = (T * T) @ weights
        best = int(np.argmin(values))
        value, changed = before, 0
        if values[best] < before - 1e-12 * abs(before):
            value, changed = float(values[best]), int(np.count_nonzero(X[best] != old))
            self._take(bit, X[best], T[best])
        seconds = time.perf_counter() - began
        return BitRecord(sweep, bit, value, -np.inf, np.inf, changed, status.value, seconds)

    def _candidate(self, weights: Any, bit: int, seconds_left: float) -> tuple[Any, Any]:
        """Signs of all rows that follow the solver's on a sample, and their Pᵀx."""
        assert self._solver is not None
        count = min(self.n, SAMPLED_ROWS)
        sample = self._rows.sampled(np.sort(self._rng.choice(self.n, count, replace=False)))
        limit = None if seconds_left == np.inf else seconds_left
        t = estimated_products(sample, weights, sample[:, bit].copy(), self.n, self._solver, self._rng, limit)
        return self._rows.signs(-weights * t)

    def _take(self, bit: int, x: Any, t: Any) -> None:
        self.codes[:, bit] = x
        self._among[bit], self._cross[bit] = t[: self.n_bits], t[self.n_bits :]
        self._among[:, bit] = self._among[bit]
        self._among[bit, bit] = self.n
