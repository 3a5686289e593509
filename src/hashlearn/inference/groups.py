"""Algorithm 1 over groups of rows that are alike to the target: one row a group, weighed by its count.

If the other bits agree within groups, a best bit does too, because A_ii ≤ 0 for the rows of a group. So m equal rows
enter xᵀAx as one variable times m, and eq. (5) becomes A = m mᵀ ∘ (Z̄Z̄ᵀ − n_bits · Y), K × K, with the values, the
optimum and the bounds of the problem of all rows. Several starts are improved by short tabu walks until no bit changes.
Then one sweep proves the bits of the best. O(n_bits · K²) a sweep, whatever n is.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bqp.methods.exact import enumerate_signs
from hashlearn.bqp.methods.tabu import ROUNDING, tabu_moves
from hashlearn.bqp.solution import relative_gap
from hashlearn.core.arrays import FloatArray
from hashlearn.core.names import is_automatic
from hashlearn.core.progress import ProgressCallback
from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.core.thresholds import LARGEST_ENUMERATED
from hashlearn.inference.all_rows import SWEEPS, solve_bit
from hashlearn.inference.descent import BitRecord, InferenceReport, countdown, descend
from hashlearn.inference.objective import objective_floor
from hashlearn.inference.presets import PRESETS, Passes, described, named_solver, new_report
from hashlearn.targets import Groups

SEARCH_SWEEPS = 10  # the most for one start; 3 to 8 are enough mostly
# Objectives of several starts differ by up to 0.5 % with 10 groups, and by 2e-5 with 77 and more (docs/quality.md).
MOST_STARTS, STARTS_OF_ONE_GROUP = 8, 320
# A walk makes 10 moves for each group, or as many as these steps allow, one step for each group and move.
MOVES, MOST_STEPS = 10, 4_000_000
ONE_ROW = "one row for each group"
# More groups than are enumerated get a bound of each bit, up to 500: about 10 ms for 150 groups. The floor says more.
PROVER, MOST_PROVEN = bqp.SemidefiniteRelaxation(tol=1e-4, n_draws=1, polish=0), 500


def infer_group_codes(
    groups: Groups,
    n_bits: int,
    *,
    solver: str | bqp.Solver | Passes = "auto",
    n_sweeps: int | str = "auto",
    rng: np.random.Generator | None = None,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[NDArray[np.int8], InferenceReport]:
    """A codeword for each group, K × n_bits, and a report that speaks of all rows; parameters as in `infer_codes`.

    "auto" searches with tabu walks and proves the bits at the end: by trying all signs of up to 20 groups, else by the
    bound of the semidefinite relaxation. ``n_sweeps="auto"`` then means: until no bit changes. A named solver solves
    each bit of each sweep.

    >>> groups = Groups(np.array([0, 1, 0]), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    >>> words, report = infer_group_codes(groups, 2, rng=np.random.default_rng(0))
    >>> words @ words.T
    array([[ 2, -2],
           [-2,  2]], dtype=int8)
    >>> report.final_objective, report.method
    (0.0, 'tabu walks from 8 starts, then exact, one row for each group')
    """
    rng = np.random.default_rng() if rng is None else rng
    began = time.perf_counter()
    with one_blas_thread(), countdown(time_limit) as seconds_left:
        if is_automatic(solver):
            bits, report = _best_search(groups, n_bits, n_sweeps, rng, seconds_left)
            bits.proves, n_sweeps = True, 1
        else:
            named = _solver_of_groups(solver)
            bits = GroupBits(groups, hadamard_rows(len(groups.counts), n_bits, rng), rng, named)
            report = new_report(solver, described(named, rows=ONE_ROW))
            n_sweeps = SWEEPS if isinstance(n_sweeps, str) else n_sweeps
        descend(bits, report, n_sweeps, seconds_left=seconds_left, progress=progress)
        report.floor = objective_floor(groups, n_bits)
    report.seconds = time.perf_counter() - began
    return bits.codes.astype(np.int8), report


def merges_rows(solver: str | bqp.Solver | Passes) -> bool:
    """Whether a solver gives one row for each group the meaning of all rows."""
    return is_automatic(solver) or _solver_of_groups(solver).merges


def _solver_of_groups(solver: str | bqp.Solver | Passes) -> bqp.Solver:
    """A named solver; passes of flips over rows become single flips, or their solver, over groups."""
    named = named_solver(solver)
    if isinstance(named, Passes):
        named = named.on_sample() or PRESETS["sweeps"]
    return named  # type: ignore[return-value]


def hadamard_rows(n_groups: int, n_bits: int, rng: np.random.Generator) -> FloatArray:
    """Random rows and columns of Sylvester's Hadamard matrix: nearly orthogonal codewords, and balanced bits."""
    order = 1 << max(n_groups - 1, n_bits).bit_length()  # the first column, all ones, is left out
    columns = 1 + rng.permutation(order - 1)[:n_bits]
    rows = rng.permutation(order)[:n_groups]
    return np.where(np.bitwise_count(rows[:, None] & columns) % 2, -1.0, 1.0)


class GroupBits:
    """The bits of one codeword for each group.

    ``solver`` solves each bit; without one a tabu walk improves it, and if it ``proves``, it says how good the bit is.
    """

    leaves_proofs_for_last = False

    def __init__(
        self, groups: Groups, codes: FloatArray, rng: np.random.Generator, solver: bqp.Solver | None = None
    ) -> None:
        self.n_bits, self.proves = codes.shape[1], False
        self._groups, self._solver, self._rng = groups, solver, rng
        self._counts = groups.counts
        self._signs = np.ascontiguousarray(codes.T)  # a bit is a row
        self._errors = codes @ codes.T - self.n_bits * groups.similarity

    @property
    def codes(self) -> FloatArray:
        """As they stand, K × n_bits."""
        return self._signs.T

    def objective(self) -> float:
        """Eq. (3) over all rows."""
        return self._groups.objective(self.codes)

    def problem(self, bit: int) -> bqp.Dense:
        """A of eq. (5), over all rows as over groups."""
        z = self._signs[bit]
        return bqp.Dense.unchecked(np.outer(self._counts, self._counts) * (self._errors - np.outer(z, z)))

    def one_bit(self, sweep: int, bit: int, seconds: float, last: bool) -> BitRecord:
        """Lower the value of one bit, or leave it."""
        began = time.perf_counter()
        x = old = self._signs[bit].copy()
        bound, status, solver = -np.inf, bqp.Status.CONVERGED, self._solver
        if solver is None:
            moves = max(1, min(MOVES * len(old), MOST_STEPS // len(old)))
            random = self._rng.integers(1, 2**63, size=1, dtype=np.uint64)
            x, value = _walk(self._errors, old, self._counts, moves, random)
            if self.proves and LARGEST_ENUMERATED < len(old) <= MOST_PROVEN:
                solver = PROVER
        if solver is not None:
            solution, x, value = solve_bit(self.problem(bit), solver, x, self._rng, seconds, self._counts)
            bound, status = solution.bound, solution.status
        elif self.proves and len(old) <= LARGEST_ENUMERATED:
            A = self.problem(bit)
            best, bound = enumerate_signs(A)  # type: ignore[assignment]
            if bound < value - 1e-12 * abs(value):
                x, value = best if best @ (self._counts * old) >= 0.0 else -best, A.value(best)
        changed = int(self._counts[x != old].sum())
        if changed:
            self._errors += np.outer(x, x) - np.outer(old, old)
            self._signs[bit] = x
        spent = time.perf_counter() - began
        return BitRecord(sweep, bit, value, bound, relative_gap(value, bound), changed, status.value, spent)


def _best_search(
    groups: Groups, n_bits: int, n_sweeps: int | str, rng: np.random.Generator, seconds_left: Callable[[], float]
) -> tuple[GroupBits, InferenceReport]:
    """The best of several starts, each improved by tabu walks until no bit changes."""
    n_groups = len(groups.counts)
    n_starts = min(MOST_STARTS, max(1, STARTS_OF_ONE_GROUP // n_groups))
    proof = ", then exact" if n_groups <= LARGEST_ENUMERATED else ", then bounds" if n_groups <= MOST_PROVEN else ""
    method = f"tabu walks from {n_starts} start{'s' * (n_starts > 1)}{proof}, {ONE_ROW}"
    sweeps = SEARCH_SWEEPS if isinstance(n_sweeps, str) else n_sweeps

    def search(seed: int) -> tuple[GroupBits, InferenceReport]:
        start_rng = np.random.default_rng(seed)
        bits = GroupBits(groups, hadamard_rows(n_groups, n_bits, start_rng), start_rng)
        report = new_report("auto", method)
        descend(bits, report, sweeps, seconds_left=seconds_left)
        return bits, report

    trials = map_threads(search, rng.integers(2**63, size=n_starts))
    return min(trials, key=lambda trial: trial[1].final_objective)


@njit(cache=True, nogil=True)
def _walk(errors, old, counts, moves, random):  # type: ignore[no-untyped-def]
    """The signs of a bit after a tabu walk, and their value; ``old`` itself if the walk finds nothing better."""
    n = len(counts)
    A, gain = np.empty((n, n)), np.empty(n)
    magnitude, before = 0.0, 0.0
    for a in range(n):
        product = 0.0
        for b in range(n):
            A[a, b] = counts[a] * counts[b] * (errors[a, b] - old[a] * old[b])
            magnitude += abs(A[a, b])
            product += A[a, b] * old[b]
        gain[a] = old[a] * product - A[a, a]
        before += old[a] * product
    x = old.copy()
    free_at, steps, values = np.zeros(n, np.int64), np.zeros(2, np.int64), np.array([before, before])
    tenure = max(1, min(max(4, n // 20), n // 4))
    tabu_moves(A, old.copy(), gain, x, free_at, steps, values, random, tenure, moves, ROUNDING * magnitude, moves)
    if not values[1] < before - 1e-12 * abs(before):
        return old.copy(), before
    return x if np.sum(counts * x * old) >= 0.0 else -x, values[1]
