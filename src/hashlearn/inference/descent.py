"""The loop of Algorithm 1, sweeps over the bits, and the record of what it did.

There is one loop. What improves a bit differs: a solver on the problem of all rows (`all_rows`), passes over rows in
memory or in blocks (`passes`), or walks and proofs over groups of equal rows (`groups`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from hashlearn import bqp
from hashlearn.core.progress import ProgressCallback, compilation_clock, tell


class BitRecord(NamedTuple):
    """One bit of one sweep."""

    sweep: int
    bit: int
    value: float  # of eq. (5) after the step
    bound: float  # proven, −inf where the solver gives none
    gap: float
    changed: int  # samples whose bit changed
    status: str
    seconds: float


@dataclass
class InferenceReport:
    """What happened; print it, or take ``pandas.DataFrame(report.bits)`` for a table of the bits."""

    solver: str  # as it was asked for
    method: str = "not recorded"  # what ran, in words
    start_objective: float = float("nan")
    objectives: list[float] = field(default_factory=list)  # after each sweep
    bits: list[BitRecord] = field(default_factory=list)
    stopped_early: bool = False
    final_objective: float = float("nan")  # of the codes returned: codewords may have been spread after the sweeps
    floor: float = float("nan")  # no codes have a lower objective; known for labels
    seconds: float = 0.0
    out_of_time: bool = False

    @property
    def excess(self) -> float:
        """How far the final objective lies above the floor, as a part of it."""
        return (self.final_objective - self.floor) / self.floor if self.floor > 0.0 else float("nan")

    def __str__(self) -> str:
        lines = [
            f"{self.solver} ({self.method}): {len(self.objectives)} sweep(s), {self.seconds:.2f} s"
            + (", no bit changed in the last" if self.stopped_early else "")
            + (", shortened by the time limit" if self.out_of_time else ""),
            f"{'sweep':>5}  {'objective':>10}  {'bits changed':>12}  {'mean gap':>9}  {'worst gap':>9}  {'seconds':>8}",
            f"{'start':>5}  {self.start_objective:>10.6f}",
        ]
        for sweep, objective in enumerate(self.objectives, start=1):
            rows = [b for b in self.bits if b.sweep == sweep]
            gaps = np.array([b.gap for b in rows])
            known = gaps[np.isfinite(gaps)]
            mean, worst = (f"{100 * known.mean():.3f} %", f"{100 * known.max():.3f} %") if known.size else ("–", "–")
            changed = sum(b.changed > 0 for b in rows)
            seconds = sum(b.seconds for b in rows)
            lines.append(f"{sweep:>5}  {objective:>10.6f}  {changed:>12}  {mean:>9}  {worst:>9}  {seconds:>8.2f}")
        above = "" if np.isnan(self.excess) else f", {100 * self.excess:.2f} % above what any codes can reach"
        lines.append(f"{'final':>5}  {self.final_objective:>10.6f}{above}")
        return "\n".join(lines)


class Bits(Protocol):
    """The bits of one code: `WholeBits`, `BitsByPasses` or `GroupBits`."""

    n_bits: int
    leaves_proofs_for_last: bool  # whether bounds are proven in the last sweep alone

    @property
    def codes(self) -> Any:
        """The codes as they stand."""

    def objective(self) -> float:
        """Eq. (3) of the codes as they stand."""

    def one_bit(self, sweep: int, bit: int, seconds: float, last: bool) -> BitRecord:
        """Improve one bit within ``seconds``, without the time that kernels take to compile."""


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


def require_seconds(time_limit: Any) -> None:
    """Refuse a time limit that is not a positive number of seconds."""
    if time_limit is not None and not (isinstance(time_limit, int | float | np.number) and time_limit > 0):
        raise ValueError(f"time_limit must be a positive number of seconds or None, got {time_limit!r}")
