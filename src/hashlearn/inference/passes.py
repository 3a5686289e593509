"""Bits by passes over all rows: what is known about the other rows is t = Pᵀx, a row of [ZᵀZ, ZᵀF].

P = [Z, F] holds the codes beside the target's factor. In one pass, every part of the rows flips single signs of the bit
while that helps, and proposes the change of t. The sum of all changes is taken if the value falls; else parts are taken
one by one as long as it falls. So the objective never rises. With a solver, a bit is also solved on a sample of rows:
with x its signs there, t ≈ (n/m) Pᵀx, every row takes the sign of −pᵀWt, and the result is polished in the same pass
and replaces the bit if it ends lower. Rows are in memory (`array_rows`) or in blocks (`hashlearn.distributed`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.solution import relative_gap
from hashlearn.bqp.state import AtMost, OutOfTime
from hashlearn.core.arrays import FloatArray
from hashlearn.core.progress import compilation_clock
from hashlearn.inference.objective import objective_of_products
from hashlearn.inference.proofs import ProofSums, bit_bound, sample_factor
from hashlearn.inference.report import BitRecord

SAMPLED_ROWS = 10_000


class Outcome(Enum):
    """What becomes of a bit in one part of the rows."""

    KEEP = -1
    POLISHED = 0
    CANDIDATE = 1


class Step(NamedTuple):
    """What a pass is told about a bit."""

    bit: int
    weights: FloatArray  # of the columns of P; 0 for the bit itself
    products: FloatArray  # t = Pᵀx of the present bit, over all rows
    candidate: FloatArray | None  # q: the candidate's signs are those of P q
    candidate_products: FloatArray | None  # an estimate of its Pᵀx


class Proposal(NamedTuple):
    """What one part of the rows proposes for a bit."""

    change: FloatArray  # Pᵀ(x − present) of the polished present bit
    products: FloatArray | None  # Pᵀx of the polished candidate
    changed: list[int]  # signs that differ from the present bit: polished, candidate
    in_time: bool = True
    columns: Sequence[Any] = ()  # the signs themselves, for parts that are elsewhere


class CodedRows(Protocol):
    """The rows of P = [Z, F], in one part or several."""

    n: int
    n_bits: int
    codes: Any
    refreshes_products: bool  # whether `products` is cheap enough to be called after every sweep

    def products(self) -> tuple[FloatArray, FloatArray]:
        """ZᵀZ and ZᵀF over all rows."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Some rows of P, with the codes as they stand."""

    def propose(self, step: Step, check_time: Callable[[], Any]) -> list[Proposal]:
        """One pass: flip signs of a bit, and of its candidate, while that helps. ``check_time`` raises `OutOfTime`."""

    def take(self, bit: int, outcomes: list[Outcome]) -> None:
        """Write the chosen signs of the last proposals."""

    def proof(self, bit: int, B: FloatArray, smallest: float) -> list[ProofSums]:
        """The sums that prove a bound for a bit, for each part."""


class BitsByPasses:
    """The codes of all rows, and the small products that say everything else about them."""

    leaves_proofs_for_last = False

    def __init__(
        self,
        rows: CodedRows,
        target_weights: FloatArray,
        target_square: float,
        solver: bqp.Solver | None,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.n, self.n_bits = rows, rows.n, rows.n_bits
        self._target_weights, self._target_square = target_weights, target_square
        self._solver, self._rng = solver, rng
        self._weights = np.r_[np.ones(self.n_bits), -float(self.n_bits) * target_weights]
        if not rows.refreshes_products:
            self._among, self._cross = rows.products()

    @property
    def codes(self) -> Any:
        """As the rows hold them."""
        return self.rows.codes

    def objective(self) -> float:
        """Eq. (3) over n²; the next bits go on from these products."""
        if self.rows.refreshes_products:
            self._among, self._cross = self.rows.products()
        return objective_of_products(self._among, self._cross.T, self._target_weights, self._target_square, self.n)

    def one_bit(self, sweep: int, bit: int, seconds: float, last: bool) -> BitRecord:
        """Lower the value of one bit, or leave it."""
        began = time.perf_counter()
        with compilation_clock() as compiling:

            def check_time() -> None:
                if time.perf_counter() - began - compiling() > seconds:
                    raise OutOfTime

            weights, t = self._problem(bit)
            estimate = None if self._solver is None else self._on_sample(self._solver, bit, weights, seconds)
            q = None if estimate is None else -weights * estimate
            proposals = self.rows.propose(Step(bit, weights, t, q, estimate), check_time)
        outcomes, t, value = agreed(proposals, t, weights)
        self.rows.take(bit, outcomes)
        self._among[bit], self._cross[bit] = t[: self.n_bits], t[self.n_bits :]
        self._among[:, bit] = self._among[bit]
        self._among[bit, bit] = self.n
        changed = sum(p.changed[o.value] for p, o in zip(proposals, outcomes, strict=True) if o is not Outcome.KEEP)
        in_time = all(proposal.in_time for proposal in proposals)
        status = bqp.Status.CONVERGED if in_time else bqp.Status.TIME_LIMIT
        return BitRecord(sweep, bit, value, -np.inf, np.inf, changed, status.value, time.perf_counter() - began)

    def certified(self, record: BitRecord) -> BitRecord:
        """The record with the value of its bit as it is now, and a proven bound."""
        weights, t = self._problem(record.bit)
        B, smallest = sample_factor(_sample_problem(self.rows.sample(self._rng), weights), self._rng)
        bound = bit_bound(weights, record.bit, self.n, self.rows.proof(record.bit, B, smallest))
        value = float(weights @ (t * t))
        return record._replace(value=value, bound=bound, gap=relative_gap(value, bound))

    def _problem(self, bit: int) -> tuple[FloatArray, FloatArray]:
        """The weights of the columns of P in the problem of a bit, and t = Pᵀx."""
        weights = self._weights.copy()
        weights[bit] = 0.0
        return weights, np.r_[self._among[bit], self._cross[bit]]

    def _on_sample(self, solver: bqp.Solver, bit: int, weights: FloatArray, seconds: float) -> FloatArray:
        """An estimate of Pᵀx over all rows, from the signs that the solver finds on a sample."""
        P = self.rows.sample(self._rng)
        present = P[:, bit].copy()
        solution = bqp.solve(
            _sample_problem(P, weights),
            solver,
            random_state=self._rng,
            x0=present,
            time_limit=AtMost(seconds),
        )
        if solution.status == bqp.Status.INTERRUPTED:
            raise KeyboardInterrupt
        x = solution.x.astype(np.float64)
        if x @ present < 0.0:
            x = -x  # the same solution with the sign that changes fewer samples
        return (P.T @ x) * (self.n / len(P))


def agreed(
    proposals: Sequence[Proposal], t: FloatArray, weights: FloatArray
) -> tuple[list[Outcome], FloatArray, float]:
    """What becomes of the bit in every part, t after it, and its value: never above the present one."""
    value = best = float(weights @ (t * t))
    enough = 1e-12 * abs(value)
    outcomes, best_t = [Outcome.KEEP] * len(proposals), t
    together = t + np.sum([proposal.change for proposal in proposals], axis=0)
    if (trial := float(weights @ (together * together))) < value - enough:
        outcomes, best_t, best = [Outcome.POLISHED] * len(proposals), together, trial
    else:
        for number, proposal in enumerate(proposals):
            moved = best_t + proposal.change
            if (trial := float(weights @ (moved * moved))) < best - enough:
                outcomes[number], best_t, best = Outcome.POLISHED, moved, trial
    if proposals[0].products is not None:
        other = np.sum([np.asarray(proposal.products) for proposal in proposals], axis=0)
        if (trial := float(weights @ (other * other))) < best - enough:
            return [Outcome.CANDIDATE] * len(proposals), other, trial
    return outcomes, best_t, best


def _sample_problem(sample: FloatArray, weights: FloatArray) -> bqp.Structured:
    """A of eq. (5) on the sampled rows alone; the bit itself has weight 0."""
    used = weights != 0.0
    return bqp.Structured.unchecked(P=np.ascontiguousarray(sample[:, used]), weights=weights[used])
