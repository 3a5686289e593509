"""Improves bits by single flips. The only global state is [ZᵀZ, ZᵀF], so rows may be in memory or in blocks elsewhere.

P = [Z, F] holds the codes beside the target's factor. In one pass, every part of the rows flips single signs of the bit
while that helps, and proposes the change of t = Pᵀx. The sum of all changes is taken if the value falls; else parts are
taken one by one as long as it falls. So the objective never rises. With a solver, a bit is also solved on a sample of
rows: with x its signs there, t ≈ (n/m) Pᵀx, every row takes the sign of −pᵀWt, and the result is polished in the same
pass and replaces the bit if it ends lower. Rows are in memory (`ArrayRows`) or in blocks (`hashlearn.distributed`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bqp.flips import dot, flip_passes, low_rank_thresholds, row_blocks
from hashlearn.bqp.rows import ProofGram
from hashlearn.bqp.sdr.certificate import low_rank_bound
from hashlearn.bqp.sdr.low_rank import relax_low_rank
from hashlearn.bqp.sdr.rounding import Tolerance
from hashlearn.bqp.solution import relative_gap
from hashlearn.bqp.state import AtMost, OutOfTime, SolveState
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.inference.descent import BitRecord, countdown
from hashlearn.inference.objective import frobenius_square, objective_of_products

Signs = NDArray[np.int8]

SAMPLED_ROWS = 10_000
MAX_PASSES = 12
SETTLED = 3e-4  # the passes end when at most this share of the signs flipped in one
PROOF_TOLERANCE = 1e-3  # of the relaxation whose solution a proof begins with
PROOF_PANEL = 4096


class Outcome(Enum):
    """What becomes of a bit in one part of the rows."""

    KEEP = -1
    POLISHED = 0
    CANDIDATE = 1


class Step(NamedTuple):
    """What a pass has to know about a bit."""

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

    def products(self) -> FloatArray:
        """[ZᵀZ, ZᵀF] over all rows at the start; `BitsByPasses` keeps it up to date."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Some rows of P, with the codes as they stand."""

    def propose(self, step: Step, tick: Callable[[], Any]) -> list[Proposal]:
        """One pass: flip signs of a bit, and of its candidate, while that helps. ``tick`` raises `OutOfTime`."""

    def take(self, bit: int, outcomes: list[Outcome]) -> None:
        """Write the signs of the last proposals that were agreed on."""


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
        self._products = rows.products()

    @property
    def codes(self) -> Any:
        """As the rows hold them."""
        return self.rows.codes

    def objective(self) -> float:
        """Eq. (3) of the codes as they stand."""
        among, cross = np.split(self._products, [self.n_bits], axis=1)
        return objective_of_products(among, cross.T, self._target_weights, self._target_square, self.n)

    def one_bit(self, sweep: int, bit: int, seconds: float, last: bool) -> BitRecord:
        """Lower the value of one bit, or leave it."""
        began = time.perf_counter()
        with countdown(seconds) as seconds_left:

            def tick() -> None:
                if seconds_left() < 0.0:
                    raise OutOfTime

            weights, t = self._problem(bit)
            estimate = None if self._solver is None else self._on_sample(self._solver, bit, weights, seconds)
            q = None if estimate is None else -weights * estimate
            proposals = self.rows.propose(Step(bit, weights, t, q, estimate), tick)
        outcomes, t, value = agreed(proposals, t, weights)
        self.rows.take(bit, outcomes)
        t[bit] = self.n
        self._products[bit], self._products[:, bit] = t, t[: self.n_bits]
        changed = sum(p.changed[o.value] for p, o in zip(proposals, outcomes, strict=True) if o is not Outcome.KEEP)
        in_time = all(proposal.in_time for proposal in proposals)
        status = bqp.Status.CONVERGED if in_time else bqp.Status.TIME_LIMIT
        return BitRecord(sweep, bit, value, -np.inf, np.inf, changed, status.value, time.perf_counter() - began)

    def certified(self, record: BitRecord, proof_sums: Callable[[FloatArray, float], list[ProofGram]]) -> BitRecord:
        """The record with the value of its bit as it is now, and a bound proven by weak duality on all rows.

        Any d > 0 gives a bound (see `hashlearn.bqp.sdr.certificate`). A good choice is d_i = ‖p_iᵀB‖ with B = W T of
        the solved relaxation; B of a sample of rows is nearly that of all of them. ``proof_sums`` applies
        `proof_sums_of` to all rows, in one part or several.
        """
        bit = record.bit
        weights, t = self._problem(bit)
        A = _sample_problem(self.rows.sample(self._rng), weights)
        tolerance = Tolerance(PROOF_TOLERANCE, A.scale(), max_rounds=30)
        B = relax_low_rank(A, tolerance, rank=8, rng=self._rng, state=SolveState(A)).low_rank_factor
        assert B is not None
        smallest = max(1e-9 * float(np.linalg.norm(A.P @ B, axis=1).mean()), 1e-300)
        parts = proof_sums(np.insert(B, bit, 0.0, axis=0), smallest)
        others = np.delete(np.arange(len(weights)), bit)
        gram = np.sum([part.gram for part in parts], axis=0)[np.ix_(others, others)]
        total = sum(part.total for part in parts) * (1.0 + self.n * EPS)
        rounding = (PROOF_PANEL + self.n / PROOF_PANEL + len(parts) + 16) * EPS
        bound = low_rank_bound(ProofGram(gram, total, rounding), weights[others]).bound
        value = float(weights @ (t * t))
        return record._replace(value=value, bound=bound, gap=relative_gap(value, bound))

    def _problem(self, bit: int) -> tuple[FloatArray, FloatArray]:
        """The weights of the columns of P in the problem of a bit, and t = Pᵀx."""
        weights = self._weights.copy()
        weights[bit] = 0.0
        return weights, self._products[bit].copy()

    def _on_sample(self, solver: bqp.Solver, bit: int, weights: FloatArray, seconds: float) -> FloatArray:
        """An estimate of Pᵀx over all rows, from the signs that the solver finds on a sample."""
        P = self.rows.sample(self._rng)
        present, limit = P[:, bit].copy(), AtMost(seconds)
        A = _sample_problem(P, weights)
        solution = bqp.solve(A, solver, random_state=self._rng, x0=present, time_limit=limit)
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


def bits_in_memory(
    target: bqp.Operator, start: Any, solver: bqp.Solver | None, monotone: bool, rng: np.random.Generator
) -> BitsByPasses:
    """Bits by passes over a NumPy factor."""
    if not (target.is_low_rank and target.rows.on_host):
        raise ValueError("solver: passes need a target of low rank in a NumPy array; 'sweeps' works for every target")
    if not monotone:
        raise ValueError("solver: passes only ever improve a bit; monotone=False needs another solver")
    return BitsByPasses(ArrayRows(target, start), target.weights, frobenius_square(target), solver, rng)


class ArrayRows:
    """`CodedRows` of a low-rank target in memory: codes as int8 beside the factor.

    `flip_passes` flips: no xᵀAx rises, and the number of threads changes nothing. A pass reads n (8 · rank + n_bits)
    bytes.
    """

    def __init__(self, target: bqp.Operator, start: Any) -> None:
        self.codes: Signs = np.array(start, dtype=np.int8, order="C")
        if not np.array_equal(np.abs(self.codes), np.ones_like(self.codes)):
            raise ValueError("start must hold only -1 and +1")
        self.factor = target.P
        self.n, self.n_bits = self.codes.shape
        self._limits = low_rank_thresholds(target.P, -float(self.n_bits) * target.weights, self.n_bits - 1.0)
        self._pending: Signs = np.empty((0, 0), np.int8)  # proposed signs, a row each

    def products(self) -> FloatArray:
        """[ZᵀZ, ZᵀF]."""

        def block(a: int, b: int) -> FloatArray:
            Z = self.codes[a:b].astype(np.float64)
            products: FloatArray = Z.T @ np.hstack([Z, self.factor[a:b]])
            return products

        total: FloatArray = np.sum(list(row_blocks(block, 0, self.n)), axis=0)
        return total

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Some rows of P, drawn anew for every bit."""
        index = np.sort(rng.choice(self.n, min(self.n, SAMPLED_ROWS), replace=False))
        return np.hstack([self.codes[index].astype(np.float64), self.factor[index]])

    def propose(self, step: Step, tick: Callable[[], Any]) -> list[Proposal]:
        """One proposal for all rows."""
        columns, products = [self.codes[:, step.bit].copy()], [step.products.copy()]
        if step.candidate is not None:
            x, t = self._signs(step.candidate)
            columns, products = [*columns, x], [*products, t]
        X, T = np.stack(columns), np.stack(products)
        in_time = True
        try:
            flip_passes(self.codes, self.factor, step.weights, self._limits, X, T, tick, MAX_PASSES, SETTLED)
        except OutOfTime:
            in_time = False
        self._pending = X
        changed = [int(np.count_nonzero(x != columns[0])) for x in X]
        return [Proposal(T[0] - step.products, T[1] if len(T) > 1 else None, changed, in_time)]

    def take(self, bit: int, outcomes: list[Outcome]) -> None:
        """Write the proposed signs that were agreed on."""
        if outcomes[0] is not Outcome.KEEP:
            self.codes[:, bit] = self._pending[outcomes[0].value]

    def _signs(self, q: FloatArray) -> tuple[Signs, FloatArray]:
        """x = sgn(P q) and Pᵀx, in one read."""
        x = np.empty(self.n, np.int8)
        parts = row_blocks(lambda a, b: signs_and_products(self.codes[a:b], self.factor[a:b], q, x[a:b]), 0, self.n)
        return x, np.sum(list(parts), axis=0)


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


def proof_sums_of(codes: Signs, factor: NDArray[np.floating], B: FloatArray, smallest: float) -> ProofGram:
    """PᵀD⁻¹P and Σd of some rows of P = [Z, F], with d_i = ‖p_iᵀB‖, but at least ``smallest``. B is 0 for the bit."""
    total, gram = 0.0, np.zeros((len(B), len(B)))
    for first in range(0, len(factor), PROOF_PANEL):
        rows = slice(first, first + PROOF_PANEL)
        P = np.hstack([codes[rows].astype(np.float64), factor[rows].astype(np.float64)])
        d = np.maximum(np.linalg.norm(P @ B, axis=1), smallest)
        Q = P / np.sqrt(d)[:, None]
        gram += Q.T @ Q
        total += float(d.sum())
    return ProofGram(gram, total, 0.0)
