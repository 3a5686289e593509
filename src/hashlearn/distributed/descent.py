"""Algorithm 1 over blocks: one pass a bit, in which vectors as long as the rank travel, and one bit a row comes back.

With P = [Z, F] the problem of a bit is known to the client through t = Pᵀx alone, a row of [ZᵀZ, ZᵀF]. A pass tells
every block t; each proposes signs (`proposals`) and sends the change of t. The sum of changes is taken if the value
falls, else blocks are taken one by one, in order, as long as it falls: the objective never rises. Solvers other than
local search work at the client on a sample of rows; their signs reach all rows through q = −W t, as sgn(Pq), are
polished in the same pass, and replace the bit if they end lower.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bqp.solution import relative_gap
from hashlearn.core.arrays import FloatArray
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.distributed.block_cache import CANDIDATE, KEEP, POLISHED, set_bit
from hashlearn.distributed.block_flips import Proposal, Step, propose
from hashlearn.distributed.certificates import SMALLEST, bit_bound, proof_sums, sample_factor
from hashlearn.distributed.executors import Executor
from hashlearn.distributed.sampling import bits_of
from hashlearn.inference.presets import for_bits
from hashlearn.inference.report import BitRecord, InferenceReport
from hashlearn.inference.sampled_bit import estimated_products, sample_problem

# On a sample, whose optimum is not that of all rows, a looser relaxation and fewer draws do as well.
SAMPLE_SDR = bqp.SemidefiniteRelaxation(tol=1e-3, n_draws=20, polish=2)
LARGE_BLOCK = 4096  # rows: a smaller block mistakes its own rows for all, and local search too needs the sample
NO_BOUND = -float("inf")


class BlockDescent:
    """The codes of all blocks, packed, and the small matrices that say everything else about them."""

    def __init__(
        self,
        executor: Executor,
        codes: list[NDArray[np.uint8]],
        among: FloatArray,
        cross: FloatArray,
        target_square: float,
        sample: FloatArray,
        sampled: Sequence[NDArray[np.intp]],
    ) -> None:
        self.executor, self.codes = executor, codes
        self.n, self.n_bits = executor.table.n, len(among)
        self._among, self._cross, self._target_square = among, cross, target_square
        self._sample, self._sampled = sample, sampled
        rows = [bits_of(block, index, self.n_bits) for block, index in zip(codes, sampled, strict=True)]
        self._sample_codes = 2.0 * np.concatenate(rows) - 1.0
        self._version = 0
        self._outcomes: list[int] | None = None

    def objective(self) -> float:
        """Eq. (3) over n², as `hashlearn.inference` has it, of the target F Fᵀ."""
        square = float(np.sum(self._among**2)) / self.n_bits**2
        return max(square - 2.0 * float(np.sum(self._cross**2)) / self.n_bits + self._target_square, 0.0) / self.n**2

    def run(
        self,
        solver: str | bqp.Solver,
        n_sweeps: int,
        rng: np.random.Generator,
        progress: ProgressCallback | None = None,
        certify: bool = False,
    ) -> InferenceReport:
        """Sweeps over the bits; ends early after one that changed nothing. With ``certify`` the records of the last
        sweep have the value of their bit at the end and a proven bound on it, at the price of a pass a bit."""
        began = time.perf_counter()
        sample_target = bqp.LowRank.unchecked(self._sample, np.ones(self._sample.shape[1]))
        chosen = SAMPLE_SDR if solver == "sdr" else for_bits(solver, sample_target)
        sees_enough = min(len(codes) for codes in self.codes) >= LARGE_BLOCK
        searches = sees_enough and (solver == "local_search" or isinstance(solver, bqp.LocalSearch))
        report = InferenceReport(solver if isinstance(solver, str) else solver.name, self.objective())
        for sweep in range(1, n_sweeps + 1):
            for bit in range(self.n_bits):
                report.bits.append(self._one_bit(sweep, bit, None if searches else chosen, rng))
                tell(progress, "inference", (sweep - 1) * self.n_bits + bit + 1, n_sweeps * self.n_bits)
            report.objectives.append(self.objective())
            if not any(record.changed for record in report.bits[-self.n_bits :]):
                report.stopped_early = sweep < n_sweeps
                break
        report.final_objective = report.objectives[-1]
        if certify:
            report.bits[-self.n_bits :] = [self._certified(record, rng) for record in report.bits[-self.n_bits :]]
        report.seconds = time.perf_counter() - began
        return report

    def _one_bit(self, sweep: int, bit: int, solver: Any, rng: np.random.Generator) -> BitRecord:
        began = time.perf_counter()
        weights, t = self._problem(bit)
        q, estimate = (None, None) if solver is None else self._candidate(bit, weights, solver, rng)
        step = Step(bit, self.n_bits, weights, t, q, estimate, echo=float(len(self.codes)))
        proposals = self.executor.map_kept(propose, self._version, self._outcomes, self.codes, step)
        outcomes, t, value = _agreed(proposals, t, weights)
        changed = sum(
            proposal.changed[outcome] for proposal, outcome in zip(proposals, outcomes, strict=True) if outcome != KEEP
        )
        self._take(bit, proposals, outcomes, t)
        return BitRecord(sweep, bit, value, NO_BOUND, np.inf, changed, "converged", time.perf_counter() - began)

    def _certified(self, record: BitRecord, rng: np.random.Generator) -> BitRecord:
        bit = record.bit
        weights, t = self._problem(bit)
        A = sample_problem(self._sample_rows(), weights)
        B = sample_factor(A, rng)
        floor = max(SMALLEST * float(np.linalg.norm(A.P @ B, axis=1).mean()), 1e-300)
        sums = self.executor.map_kept(proof_sums, self._version, self._outcomes, self.codes, bit, self.n_bits, B, floor)
        bound, value = bit_bound(weights, bit, self.n, sums), float(weights @ (t * t))
        return record._replace(value=value, bound=bound, gap=relative_gap(value, bound))

    def _problem(self, bit: int) -> tuple[FloatArray, FloatArray]:
        """Weights of the columns of [Z, F] in the problem of a bit, and t = Pᵀx."""
        weights = np.r_[np.ones(self.n_bits), np.full(self._cross.shape[1], -float(self.n_bits))]
        weights[bit] = 0.0
        return weights, np.r_[self._among[bit], self._cross[bit]]

    def _sample_rows(self) -> FloatArray:
        return np.hstack([self._sample_codes, self._sample])

    def _candidate(
        self, bit: int, weights: FloatArray, solver: Any, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """q and an estimate of Pᵀx for the signs that the solver finds on the sample."""
        P = self._sample_rows()
        estimate = estimated_products(P, weights, P[:, bit].copy(), self.n, solver, rng)
        return -weights * estimate, estimate

    def _take(self, bit: int, proposals: Sequence[Proposal], outcomes: list[int], t: FloatArray) -> None:
        first = 0
        for codes, index, proposal, outcome in zip(self.codes, self._sampled, proposals, outcomes, strict=True):
            if outcome != KEEP:
                column = np.unpackbits(proposal.columns[outcome], count=len(codes)).astype(bool)
                set_bit(codes, bit, column)
                self._sample_codes[first : first + len(index), bit] = 2.0 * column[index] - 1.0
            first += len(index)
        self._among[bit], self._cross[bit] = t[: self.n_bits], t[self.n_bits :]
        self._among[:, bit] = self._among[bit]
        self._among[bit, bit] = self.n
        self._version += 1
        self._outcomes = outcomes


def _agreed(proposals: Sequence[Proposal], t: FloatArray, weights: FloatArray) -> tuple[list[int], FloatArray, float]:
    """What becomes of the bit in every block, t after it, and its value: never above the present one."""
    value = best = float(weights @ (t * t))
    enough = 1e-12 * abs(value)
    outcomes, best_t = [KEEP] * len(proposals), t
    together = t + np.sum([proposal.change for proposal in proposals], axis=0)
    if (trial := float(weights @ (together * together))) < value - enough:
        outcomes, best_t, best = [POLISHED] * len(proposals), together, trial
    else:
        for number, proposal in enumerate(proposals):
            moved = best_t + proposal.change
            if (trial := float(weights @ (moved * moved))) < best - enough:
                outcomes[number], best_t, best = POLISHED, moved, trial
    if proposals[0].products is not None:
        other = np.sum([np.asarray(proposal.products) for proposal in proposals], axis=0)
        if (trial := float(weights @ (other * other))) < best - enough:
            return [CANDIDATE] * len(proposals), other, trial
    return outcomes, best_t, best
