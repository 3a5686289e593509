"""Algorithm 1 over all rows, O(n · (rank + n_bits)) memory: each bit is one problem, eqs. (4) and (5).

A = Z̄Z̄ᵀ − n_bits · Y, with Z̄ the codes without that bit. The factor [Z̄, F] is one buffer, a NumPy array or a tensor:
going from one bit to the next changes a single column.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.bqp.rows import rows_of
from hashlearn.bqp.solution import relative_gap
from hashlearn.bqp.state import AtMost
from hashlearn.core.arrays import FloatArray, is_tensor
from hashlearn.core.names import is_automatic
from hashlearn.core.progress import ProgressCallback
from hashlearn.core.threads import one_blas_thread
from hashlearn.inference.descent import BitRecord, Bits, InferenceReport, countdown, descend, require_seconds
from hashlearn.inference.objective import frobenius_square, objective, objective_floor
from hashlearn.inference.passes import bits_in_memory
from hashlearn.inference.presets import Passes, described, new_report, solver_pair
from hashlearn.targets import Groups

SWEEPS, SWEEPS_OF_PASSES = 3, 5  # what "auto" stands for


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
    last, early = solver_pair(solver, target, start.shape[1], monotone, groups is not None)
    if isinstance(n_sweeps, str):
        n_sweeps = SWEEPS_OF_PASSES if is_automatic(solver) and isinstance(last, Passes) else SWEEPS
    report = new_report(solver, described(last))
    began = time.perf_counter()
    with one_blas_thread(), countdown(time_limit) as seconds_left:
        bits: Bits
        if isinstance(last, Passes):
            bits = bits_in_memory(target, start, last.on_sample(), monotone, rng)
        else:
            bits = WholeBits(target, start, last, early, monotone, rng)
        descend(bits, report, n_sweeps, monotone, seconds_left, progress)
        if isinstance(bits, WholeBits) and bits.is_sampled:
            what = "relaxations of sampled rows, rounding and proofs on all rows"
            report.method = report.method.replace("all rows", what)
        if groups is not None:
            report.floor = objective_floor(groups, bits.n_bits)
    report.seconds = time.perf_counter() - began
    return rows_of(bits.codes).as_int8(bits.codes), report


class WholeBits:
    """The bits of one code; each is handed to a solver of `bqp`.

    ``early`` is the solver of every sweep but the last: bits are solved again later, so expensive proofs can wait.
    """

    def __init__(
        self,
        target: bqp.Operator,
        start: Any,
        solver: bqp.Solver,
        early: bqp.Solver,
        monotone: bool,
        rng: np.random.Generator,
    ) -> None:
        if target.rows.on_host:
            self.codes: Any = np.array(start, dtype=np.float64)
        else:
            from hashlearn.linalg.tensors import checked_signs

            self.codes = checked_signs(start, (target.n, -1), target.P, "start")
        self.n_bits = self.codes.shape[1]
        self._target, self._solver, self._early = target, solver, early
        self._target_square = frobenius_square(target)
        self._monotone, self._rng = monotone, rng
        self.is_sampled = False  # whether a relaxation saw only some of the rows
        self.leaves_proofs_for_last = early != solver
        self._dense: FloatArray | None = None
        if target.is_dense:
            self._dense = self.codes @ self.codes.T - self.n_bits * target.array
            return
        self._sparse = None if target.sparse is None else -float(self.n_bits) * target.sparse
        self._buffer = _joined(self.codes[:, 1:], target.P)
        # The rows object lives as long as the buffer: on a device it owns what was recorded for one bit and is
        # replayed for the next.
        self._rows = rows_of(self._buffer)
        self._weights = np.r_[np.ones(self.n_bits - 1), -self.n_bits * target.weights]
        self._held_out = 0
        self._slot_of = {bit: bit - 1 for bit in range(1, self.n_bits)}  # the buffer's column of each other bit

    def problem(self, bit: int) -> bqp.Operator:
        """A of eq. (5) for ``bit``. Valid until the next call."""
        if self._dense is not None:
            z = self.codes[:, bit]
            return bqp.Dense.unchecked(self._dense - np.multiply.outer(z, z))
        if bit != self._held_out:
            slot = self._slot_of.pop(bit)
            self._buffer[:, slot] = self.codes[:, self._held_out]
            self._slot_of[self._held_out] = slot
            self._held_out = bit
        return bqp.Structured.unchecked(self._sparse, self._rows, self._weights)

    def update(self, bit: int, x: Any) -> None:
        """Take x as the new signs of ``bit``, the bit whose problem was asked for last."""
        if self._dense is not None:
            z = self.codes[:, bit]
            self._dense += np.multiply.outer(x, x) - np.multiply.outer(z, z)
        self.codes[:, bit] = x

    def objective(self) -> float:
        """Eq. (3) of the codes as they stand."""
        return objective(self._target, self.codes, self._target_square)

    def one_bit(self, sweep: int, bit: int, seconds: float, last: bool) -> BitRecord:
        """Solve one bit; with ``monotone`` its signs are replaced only by better ones."""
        A = self.problem(bit)
        old = A.rows.copy(self.codes[:, bit])
        solver = self._solver if last else self._early
        solution, x, value = solve_bit(A, solver, old, self._rng, seconds, monotone=self._monotone)
        details = solution.details
        self.is_sampled |= "relaxed_rows" in details and details["relaxed_rows"] < details["merged_n"]
        self.update(bit, x)
        gap = relative_gap(value, solution.bound)
        changed = int((x != old).sum())
        return BitRecord(sweep, bit, value, solution.bound, gap, changed, solution.status.value, solution.seconds)


def solve_bit(
    A: bqp.Operator,
    solver: bqp.Solver,
    old: Any,
    rng: np.random.Generator,
    seconds: float,
    counts: FloatArray | None = None,
    monotone: bool = True,
) -> tuple[bqp.Solution, Any, float]:
    """The solution of one bit, the signs to take and their value: with ``monotone`` the old ones if no better.

    ``counts`` are the rows that each variable stands for; None: one each.
    """
    solution = bqp.solve(A, solver, random_state=rng, x0=old if monotone else None, time_limit=AtMost(seconds))
    if solution.status == bqp.Status.INTERRUPTED:
        raise KeyboardInterrupt
    x, value = A.rows.copy(solution.x), solution.value
    if monotone or solution.status == bqp.Status.TIME_LIMIT:
        if float((x * (old if counts is None else counts * old)).sum()) < 0.0:
            x = -x  # the same solution with the sign that changes fewer rows
        before = solution.details["start_value"] if monotone else A.value(old)
        if not value < before - 1e-12 * abs(before):
            x, value = old, before
    return solution, x, value


def _joined(codes: Any, factor: Any) -> Any:
    """[codes, factor] in one new buffer."""
    if not is_tensor(factor):
        return np.hstack([codes, factor])
    from hashlearn.linalg.tensors import buffer

    both = buffer(len(factor), codes.shape[1] + factor.shape[1], factor)
    both[:, : codes.shape[1]] = codes
    both[:, codes.shape[1] :] = factor
    return both
