"""Algorithm 1: sweep over the bits, each bit one binary quadratic problem. O(n · (rank + n_bits)) memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bqp.operators import FloatArray
from hashlearn.bqp.solution import relative_gap
from hashlearn.bqp.threads import one_blas_thread
from hashlearn.inference.bit_problem import BitProblems
from hashlearn.inference.bit_solvers import for_bits
from hashlearn.inference.codebook import spread_codewords
from hashlearn.inference.report import BitRecord, InferenceReport


def infer_codes(
    target: bqp.Operator,
    start: FloatArray,
    *,
    solver: str | bqp.Solver = "sdr",
    n_sweeps: int = 3,
    monotone: bool = True,
    spread: bool = True,
    rng: np.random.Generator | None = None,
    time_limit: float | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> tuple[NDArray[np.int8], InferenceReport]:
    """Codes Z with ZZᵀ ≈ n_bits · Y, by coordinate descent over bits from ``start`` (Algorithm 1).

    Parameters
    ----------
    target : Y with entries in [−1, 1]
    start : signs (n, n_bits)
    solver : a name or object of `bqp`; what a name stands for is in `for_bits`
    n_sweeps : max_iter of Algorithm 1
    monotone : each bit starts from its present signs and is only replaced by better ones, and inference ends after a
        sweep without change; False is the literal paper, which takes whatever the solver returns
    spread : where samples of one class end with one code, prefer codewords that keep apart among equal objectives
    time_limit : seconds; the bits that are not reached by then stay as they are, and the report says so
    progress : called with (bits done, bits in all)

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
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
    rng = np.random.default_rng() if rng is None else rng
    solver = for_bits(solver, target)
    began = time.perf_counter()
    deadline = float("inf") if time_limit is None else began + time_limit
    with one_blas_thread():
        problems = BitProblems(target, np.array(start, dtype=np.float64))
        report = InferenceReport(_solver_name(solver), problems.objective())
        total = n_sweeps * problems.n_bits
        for sweep in range(1, n_sweeps + 1):
            for bit in range(problems.n_bits):
                left = deadline - time.perf_counter()
                if left <= 0.0:
                    report.out_of_time = True
                    break
                report.bits.append(_one_bit(problems, sweep, bit, solver, monotone, rng, left))
                if progress is not None:
                    progress((sweep - 1) * problems.n_bits + bit + 1, total)
            report.objectives.append(problems.objective())
            if report.out_of_time or report.bits[-1].status == bqp.Status.TIME_LIMIT:
                report.out_of_time = True
                break
            if monotone and not any(record.changed for record in report.bits[-problems.n_bits :]):
                report.stopped_early = sweep < n_sweeps
                break
        if spread:
            problems = BitProblems(target, spread_codewords(target, problems.codes, rng))
            report.final_objective = problems.objective()
        else:
            report.final_objective = report.objectives[-1]
    report.seconds = time.perf_counter() - began
    return problems.codes.astype(np.int8), report


def _one_bit(
    problems: BitProblems,
    sweep: int,
    bit: int,
    solver: str | bqp.Solver,
    monotone: bool,
    rng: np.random.Generator,
    seconds_left: float,
) -> BitRecord:
    A = problems.problem(bit)
    old = problems.codes[:, bit].copy()
    limit = None if seconds_left == float("inf") else seconds_left
    solution = bqp.solve(A, solver, random_state=rng, x0=old if monotone else None, time_limit=limit)
    if solution.status == bqp.Status.INTERRUPTED:
        raise KeyboardInterrupt
    x, value = solution.x.astype(np.float64), solution.value
    if monotone or solution.status == bqp.Status.TIME_LIMIT:
        if x @ old < 0.0:
            x = -x  # the same solution, seen from where the bit stands
        before = A.value(old)
        if not value < before - 1e-12 * abs(before):
            x, value = old, before
    problems.update(bit, x)
    gap = relative_gap(value, solution.bound)
    changed = int(np.count_nonzero(x != old))
    return BitRecord(sweep, bit, value, solution.bound, gap, changed, solution.status.value, solution.seconds)


def _solver_name(solver: str | bqp.Solver) -> str:
    return solver if isinstance(solver, str) else solver.name
