"""Algorithm 1: sweep over the bits, each bit one binary quadratic problem. O(n · (rank + n_bits)) memory.

There is one loop. The bits are found as whole problems by a solver (`whole_bits`) or by passes over rows (`passes`),
which may be in memory or in blocks elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.rows import rows_of
from hashlearn.core.progress import ProgressCallback, compilation_clock, tell
from hashlearn.core.threads import one_blas_thread
from hashlearn.inference.array_rows import MAX_PASSES, ArrayRows
from hashlearn.inference.objective import frobenius_square, objective_floor
from hashlearn.inference.passes import SAMPLED_ROWS, BitsByPasses
from hashlearn.inference.presets import Passes, described, solver_pair
from hashlearn.inference.report import BitRecord, InferenceReport
from hashlearn.inference.whole_bits import WholeBits
from hashlearn.targets import Groups

SWEEPS, SWEEPS_OF_PASSES = 3, 5  # what "auto" stands for


class Bits(Protocol):
    """The bits of one code: `WholeBits` or `BitsByPasses`."""

    n_bits: int
    leaves_proofs_for_last: bool  # whether bounds are proven in the last sweep alone

    @property
    def codes(self) -> Any:
        """The codes as they stand."""

    def objective(self) -> float:
        """Eq. (3) of the codes as they stand."""

    def one_bit(self, sweep: int, bit: int, seconds: float, last: bool) -> BitRecord:
        """Improve one bit within ``seconds``, without the time that kernels take to compile."""


def infer_codes(
    target: bqp.Operator,
    start: Any,
    *,
    solver: str | bqp.Solver | Passes = "auto",
    n_sweeps: int | str = 3,
    monotone: bool = True,
    groups: Groups | None = None,
    rng: np.random.Generator | None = None,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[Any, InferenceReport]:
    """Codes Z with ZZᵀ ≈ n_bits · Y, by coordinate descent over bits from ``start`` (Algorithm 1).

    Parameters
    ----------
    target : Y with entries in [−1, 1]
    start : signs (n, n_bits), of the same kind as the rows of the target; codes come back as int8 of that kind
    solver : "auto", a name of `bqp.METHODS` (that method with its defaults), a name of `PRESETS`, or an object
    n_sweeps : max_iter of Algorithm 1. "auto" is 3, and 5 if solver "auto" takes passes of flips, which are cheap
    monotone : each bit starts from its present signs and is only replaced by better ones, and inference ends after a
        sweep without change; False is the literal paper, which takes whatever the solver returns
    groups : the rows that are alike to the target, if it knows: for what "auto" means, and for the report's floor
    time_limit : seconds, an upper bound: each bit does its usual work, or less if that takes more than its share of the
        time. Unless ``report.out_of_time`` says so, codes are those of a fit without limit
    progress : called with a `hashlearn.core.progress.Progress` after each bit

    Ctrl-C ends it with a KeyboardInterrupt: codes of half the bits would pass for finished ones.

    >>> Y = bqp.LowRank([[1.0], [1.0], [-1.0]], [1.0])
    >>> codes, report = infer_codes(Y, np.ones((3, 2)), solver="exact", rng=np.random.default_rng(0))
    >>> codes @ codes.T
    array([[ 2,  2, -2],
           [ 2,  2, -2],
           [-2, -2,  2]], dtype=int8)
    >>> report.objectives[-1], report.method
    (0.0, 'exact, all rows')
    """
    require_seconds(time_limit)
    rng = np.random.default_rng() if rng is None else rng
    pair = solver_pair(solver, target, start.shape[1], monotone, groups is not None)
    by_passes = isinstance(pair.last, Passes)
    if isinstance(n_sweeps, str):
        n_sweeps = SWEEPS_OF_PASSES if by_passes and isinstance(solver, str) and solver == "auto" else SWEEPS
    began = time.perf_counter()
    with one_blas_thread(), countdown(time_limit) as seconds_left:
        bits: Bits
        if isinstance(pair.last, Passes):
            bits = bits_in_memory(target, start, pair.last, monotone, rng)
        else:
            bits = WholeBits(target, start, pair.last, pair.early, monotone, rng)  # type: ignore[arg-type]
        report = InferenceReport.of(solver, pair.last, described(pair.last, MAX_PASSES))
        descend(bits, report, n_sweeps, monotone, seconds_left, progress)
        if isinstance(bits, WholeBits) and bits.is_sampled:
            what = "relaxations of sampled rows, rounding and proofs on all rows"
            report.method = report.method.replace("all rows", what)
        if groups is not None:
            report.floor = objective_floor(groups, bits.n_bits)
    report.seconds = time.perf_counter() - began
    return rows_of(bits.codes).as_int8(bits.codes), report


def descend(
    bits: Bits,
    report: InferenceReport,
    n_sweeps: int,
    monotone: bool = True,
    seconds_left: Callable[[], float] = lambda: float("inf"),
    progress: ProgressCallback | None = None,
) -> None:
    """The loop of Algorithm 1: improves ``bits`` in place and writes down what happened, after what the report has."""
    first = 1 + len(report.objectives)
    if first == 1:
        report.start_objective = report.final_objective = bits.objective()
    is_settled = False
    for sweep in range(first, first + n_sweeps):
        last = is_settled or sweep == first + n_sweeps - 1
        for bit in range(bits.n_bits):
            left = seconds_left()
            if left <= 0.0:
                break
            # A bit gets its share of the time, so that a slow one leaves some for the others.
            report.bits.append(bits.one_bit(sweep, bit, left / (bits.n_bits - bit), last))
            tell(progress, "inference", (sweep - first) * bits.n_bits + bit + 1, n_sweeps * bits.n_bits)
        report.final_objective = bits.objective()
        report.objectives.append(report.final_objective)
        if left <= 0.0 or report.bits[-1].status == bqp.Status.TIME_LIMIT:
            report.out_of_time = True
            break
        records = report.bits[-bits.n_bits :]
        is_cut = any(record.status == bqp.Status.TIME_LIMIT for record in records)
        report.out_of_time |= is_cut
        is_settled = monotone and not is_cut and not any(record.changed for record in records)
        report.stopped_early = is_settled
        if is_settled and (last or not bits.leaves_proofs_for_last):
            break


@contextmanager
def countdown(seconds: float | None) -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds left, without the time that kernels take to compile."""
    end = float("inf") if seconds is None else time.perf_counter() + seconds
    with compilation_clock() as compiling:
        yield lambda: end + compiling() - time.perf_counter()


def bits_in_memory(
    target: bqp.Operator, start: Any, passes: Passes, monotone: bool, rng: np.random.Generator
) -> BitsByPasses:
    """Bits by passes over a NumPy factor."""
    if not (target.is_low_rank and target.rows.on_host):
        raise ValueError("solver: passes need a target of low rank in a NumPy array; 'sweeps' works for every target")
    if not monotone:
        raise ValueError("solver: passes only ever improve a bit; monotone=False needs another solver")
    solver = passes.on_sample(min(target.n, SAMPLED_ROWS))
    return BitsByPasses(ArrayRows(target, start), target.weights, frobenius_square(target), solver, rng)


def require_seconds(time_limit: Any) -> None:
    """Refuse a time limit that is not a positive number of seconds."""
    if time_limit is not None and not (isinstance(time_limit, int | float | np.number) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
