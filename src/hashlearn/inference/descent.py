"""Algorithm 1: sweep over the bits, each bit one binary quadratic problem. O(n · (rank + n_bits)) memory."""

from __future__ import annotations

import time
from numbers import Real
from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.rows import Rows, rows_of
from hashlearn.bqp.rows.numpy_rows import NumpyRows
from hashlearn.bqp.solution import relative_gap
from hashlearn.bqp.solve import _configured as configured
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import one_blas_thread
from hashlearn.inference.bit_problem import BitProblems, objective
from hashlearn.inference.codebook import spread_codewords
from hashlearn.inference.many_rows import ManyRows, bits_by_passes
from hashlearn.inference.presets import for_bits
from hashlearn.inference.report import BitRecord, InferenceReport


def infer_codes(
    target: bqp.Operator,
    start: Any,
    *,
    solver: str | bqp.Solver = "sdr",
    n_sweeps: int = 3,
    monotone: bool = True,
    spread: bool = True,
    rng: np.random.Generator | None = None,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[Any, InferenceReport]:
    """Codes Z with ZZᵀ ≈ n_bits · Y, by coordinate descent over bits from ``start`` (Algorithm 1).

    Parameters
    ----------
    target : Y with entries in [−1, 1]
    start : signs (n, n_bits), of the same kind as the rows of the target; codes come back as int8 of that kind
    solver : a name or object of `bqp`; what a name stands for is in `for_bits`. Of a low-rank NumPy target with over
        20,000 rows "local_search" and "al" take a few passes over all rows for a bit, the latter from a solution on a
        sample of 10,000 rows (`hashlearn.inference.many_rows`). An object always solves the problem of all rows.
        "sdr" proves a bound for every bit; of over 10,000 rows on a device for those of the last sweep
    n_sweeps : max_iter of Algorithm 1
    monotone : each bit starts from its present signs and is only replaced by better ones, and inference ends after a
        sweep without change; False is the literal paper, which takes whatever the solver returns
    spread : where samples of one class end with one code, prefer codewords that keep apart among equal objectives
    time_limit : seconds; the bits that are not reached by then stay as they are, and the report says so
    progress : called with a `Progress` after each bit

    Ctrl-C ends it with a KeyboardInterrupt: codes of half the bits would pass for finished ones.

    >>> Y = bqp.LowRank([[1.0], [1.0], [-1.0]], [1.0])
    >>> codes, report = infer_codes(Y, np.ones((3, 2)), solver="exact", rng=np.random.default_rng(0))
    >>> codes @ codes.T
    array([[ 2,  2, -2],
           [ 2,  2, -2],
           [-2, -2,  2]], dtype=int8)
    >>> report.objectives[-1]
    0.0
    """
    if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
    configured(solver, argument="solver")  # refused here, where the argument has this name
    rng = np.random.default_rng() if rng is None else rng
    began = time.perf_counter()
    deadline = float("inf") if time_limit is None else began + time_limit
    with one_blas_thread():
        problems: ManyRows | _SolvedBits | None = bits_by_passes(target, start, solver, rng) if monotone else None
        spread = spread and problems is None  # of many rows only those that hardly repeat are found by passes
        if problems is None:
            problems = _SolvedBits(target, start, solver, monotone, rng)
        report = InferenceReport(_solver_name(solver), problems.objective())
        total = n_sweeps * problems.n_bits
        settled = False
        for sweep in range(1, n_sweeps + 1):
            last = settled or sweep == n_sweeps
            for bit in range(problems.n_bits):
                left = deadline - time.perf_counter()
                if left <= 0.0:
                    report.out_of_time = True
                    break
                report.bits.append(problems.one_bit(sweep, bit, left, last))
                tell(progress, "inference", (sweep - 1) * problems.n_bits + bit + 1, total)
            report.objectives.append(problems.objective())
            if report.out_of_time or report.bits[-1].status == bqp.Status.TIME_LIMIT:
                report.out_of_time = True
                break
            settled = monotone and not any(record.changed for record in report.bits[-problems.n_bits :])
            if settled and (last or not problems.leaves_proofs_for_last):
                report.stopped_early = sweep < n_sweeps
                break
        if spread:
            codes = spread_codewords(target, problems.codes, rng)
            unchanged = codes is problems.codes
            report.final_objective = report.objectives[-1] if unchanged else objective(target, codes)
        else:
            codes = problems.codes
            report.final_objective = report.objectives[-1]
    report.seconds = time.perf_counter() - began
    return rows_of(codes).codes_out(), report


class _SolvedBits(BitProblems):
    """Bits whose problems are handed to a solver, all rows of them."""

    def __init__(
        self, target: bqp.Operator, start: Any, solver: str | bqp.Solver, monotone: bool, rng: np.random.Generator
    ) -> None:
        super().__init__(target, _rows(target).codes(start).P)
        self._solver, self._early = (for_bits(solver, target, last) for last in (True, False))
        self._monotone, self._rng = monotone, rng
        self.leaves_proofs_for_last = self._early != self._solver

    def one_bit(self, sweep: int, bit: int, seconds_left: float, last: bool) -> BitRecord:
        """Solve, and take what came unless it has to be better and is not."""
        A, old, monotone = self.problem(bit), self.column(bit), self._monotone
        tall = A.tall
        limit = None if seconds_left == float("inf") else seconds_left
        x0 = old if monotone else None
        solver = self._solver if last else self._early
        solution = bqp.solve(A, solver, random_state=self._rng, x0=x0, time_limit=limit)
        if solution.status == bqp.Status.INTERRUPTED:
            raise KeyboardInterrupt
        x, value = tall.as_float(solution.x), solution.value
        if monotone or solution.status == bqp.Status.TIME_LIMIT:
            if tall.dot(x, old) < 0.0:
                x = -x  # the same solution, seen from where the bit stands
            before = solution.details["start_value"] if monotone else A.value(old)
            if not value < before - 1e-12 * abs(before):
                x, value = old, before
        self.update(bit, x)
        gap = relative_gap(value, solution.bound)
        changed = int((x != old).sum())
        return BitRecord(sweep, bit, value, solution.bound, gap, changed, solution.status.value, solution.seconds)


def _rows(target: bqp.Operator) -> Rows:
    """Of the kind that the codes should be of: the target's own."""
    low_rank = target if isinstance(target, bqp.LowRank) else getattr(target, "low_rank", None)
    return NumpyRows(np.empty((target.n, 0))) if low_rank is None else low_rank.rows


def _solver_name(solver: str | bqp.Solver) -> str:
    return solver if isinstance(solver, str) else solver.name
