"""The relaxation (10) over unit rows V (n × k) with X = VVᵀ, for every kind of operator.

1. Steps until they hardly gain anything: sweeps where A is sparse, L-BFGS elsewhere (`steps`).
2. The gap that Lanczos expects of y_i = a_ii − ‖g_i‖. If it is much wider than what the steps could still gain, V is
   near a point that more columns would leave. V then gets half as many columns again, along the directions of negative
   curvature, and the steps go on.
3. The proof, once, when the expected gap is small enough. Beyond ``proof_limit`` rows, and on a device, the proof
   itself is the test.

A large sparse problem is swept in float32 until that limits the gap. With a time limit, half of it is for steps and a
quarter for the certificate. Points and bounds on the way are proposed after 8, 32, 128, … steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hashlearn.bqp.operators import Operator
from hashlearn.bqp.rows import Array
from hashlearn.bqp.sdr.certificate import Certificate, dual_bound, expected_bound, is_factored
from hashlearn.bqp.sdr.chebyshev import MOST_TESTS
from hashlearn.bqp.sdr.rounding import Relaxation, Tolerance
from hashlearn.bqp.sdr.steps import DeviceSweeps, MixingSweeps, QuasiNewton, normals, unit_rows
from hashlearn.bqp.state import SolveState
from hashlearn.core.thresholds import SINGLE_PRECISION_NUMBERS

# Steps pause for a certificate when rows could gain less than this of the value, (linear, quadratic) in the gap that is
# allowed. Near an optimum the gap is of the order of the root of the gain, measured as 0.03 to 1.2 times that root.
# A gap of more than STUCK roots comes from too few columns.
GAIN_AT_GAP = 1.0 / 150.0, 4.0
STUCK = 10.0
MOST_STEPS = 3000  # without a certificate
SMALLEST_GAIN = 1e-14  # relative to the value: rounding
SINGLE_PRECISION_GAP = 2e-5  # smaller gaps need float64
NEW_COLUMNS = 0.05  # squared length of the new part of each row
# Shares of a time limit: until the steps end, and for the last certificate and those on the way.
STEPS_SHARE, LAST_SHARE, EARLY_SHARE = 0.5, 0.25, 0.04
FIRST_EARLY = 8  # steps before the first point and bound on the way; then four times as many each time
MOST_ROUNDS = MOST_TESTS - 16  # one test in each round; the others are for bounds on the way, far fewer than 16


@dataclass
class GeneralRelaxation:
    """The state of one relaxation; ``on_the_way`` is called with V now and then."""

    A: Operator
    tolerance: Tolerance
    rng: np.random.Generator
    state: SolveState
    on_the_way: Callable[[Array], Any] | None = None

    def __post_init__(self) -> None:
        A, state = self.A, self.state
        self.early_rng = self.rng.spawn(1)[0]
        self._check_time = partial(state.check_time, "certificate")
        self.limit = state.seconds + state.seconds_left
        self.most_columns = int(np.sqrt(2 * A.n)) + 8  # every minimum with more columns is global
        kinds: Any = (MixingSweeps if A.rows.on_host else DeviceSweeps) if A.is_sparse else QuasiNewton
        self.steps = kinds(A)
        self.trace = float(A.diagonal().sum())
        self.made, self.next_early, self.gain = 0, FIRST_EARLY, np.inf
        self.best = Certificate(-np.inf, np.empty(0), "none")

    def solve(self, rank: int) -> Relaxation:
        """Solve (10) to a certified gap, by rounds of steps and certificates."""
        A, tolerance, steps = self.A, self.tolerance, self.steps
        # Where P has few columns, V needs few. Random regular graphs need about n^⅓ for a gap of 1e-4, grids fewer.
        width = min(rank if A.rank else max(2 * rank, 8 * int(np.ceil(A.n ** (1.0 / 3.0) / 8.0))), A.n)
        single = A.is_sparse and A.n * width > SINGLE_PRECISION_NUMBERS
        V = unit_rows(normals(A, self.rng, width, single))
        steps.start(V)
        best, best_value = V, np.inf
        target = _target(tolerance.relative)
        rounds = min(tolerance.max_rounds, MOST_ROUNDS)
        for round_ in range(rounds):
            self._settle(target)
            self._check_time()
            value, y = steps.dual()
            if value < best_value:
                best, best_value = steps.V, value
            last = round_ + 1 == rounds or self._is_late() or self.gain <= SMALLEST_GAIN * steps.pull
            bound, directions = self._certified(value, y, last)
            if last or tolerance.met(best_value, self.best.bound):
                break
            gap, gain = ((value - bound) / self._size(), 2.0 * (value - float(y.sum())) / self._size())
            if gap * gap > STUCK * STUCK * gain and steps.V.shape[1] < self.most_columns:
                steps.start(self._wider(directions))
                continue
            target = min(target, gain) * min(max(0.7 * tolerance.relative / gap, 0.03), 0.5) ** 2
            if single and target < _target(SINGLE_PRECISION_GAP):
                single = False
                steps.start(A.rows.xp.asarray(steps.V, dtype=A.rows.xp.float64))
        return Relaxation(A, best_value, self.best.bound, best.shape[1], self.best.kind, unit_rows=best)

    def _settle(self, target: float) -> None:
        """Steps until one could gain less than ``target`` of the value, or time or patience is over."""
        check_time = partial(self.state.check_time, "relaxation")
        for _ in range(MOST_STEPS):
            self.gain = self.steps.step(check_time)
            self.made += 1
            if self._is_late() or self.gain <= max(target * self._size(), SMALLEST_GAIN * self.steps.pull):
                return
            if self.made >= self.next_early and self.on_the_way is not None:
                self.next_early *= 4
                self._early(self.on_the_way)

    def _size(self) -> float:
        """What a gap is measured against: see `Tolerance.met`."""
        return max(abs(self.trace - self.steps.pull), 1e-3 * self.tolerance.scale)

    def _early(self, on_the_way: Callable[[Array], Any]) -> None:
        """Offer a point, and a bound if time is limited."""
        on_the_way(self.steps.V)
        if self.limit < np.inf:
            value, y = self.steps.dual()
            enough = value - 0.1 * abs(value)
            self._propose(dual_bound(self.A, y, self.early_rng, self._check_time, enough, 0, EARLY_SHARE * self.limit))
            self.state.record(relaxation_value=value)

    def _certified(self, value: float, y: Array, last: bool) -> tuple[float, Array]:
        """The bound that y has or is expected to have, and the directions of negative curvature that show it.

        A bound that is expected to be too low is not proven, except in the ``last`` round.
        """
        enough = self.tolerance.enough(value)
        seconds = max(LAST_SHARE * self.limit, 0.0) if self.limit < np.inf else np.inf
        limit = self.tolerance.proof_limit
        goal: float | None = enough
        if is_factored(self.A, limit, seconds):
            expected, directions = expected_bound(self.A, y, enough, self.rng, self._check_time)
            if expected < enough and not last:
                return expected, directions
            goal = enough if expected >= enough else None
        certificate = dual_bound(self.A, y, self.rng, self._check_time, goal, limit, seconds)
        self._propose(certificate)
        return certificate.bound, certificate.direction

    def _propose(self, certificate: Certificate) -> None:
        if certificate.bound > self.best.bound:
            self.best = certificate
        if self.state.propose_bound(certificate.bound):
            self.state.details["certificate"] = certificate.kind

    def _is_late(self) -> bool:
        return self.state.seconds_left < (1.0 - STEPS_SHARE) * self.limit < np.inf

    def _wider(self, directions: Array) -> Array:
        """V with half as many columns again: the given directions, then random ones."""
        V, xp = self.steps.V, self.A.rows.xp
        n, width = V.shape
        count = min(8 * max(1, round(width / 16)), self.most_columns + 8 - width)
        new = normals(self.A, self.rng, count, V.dtype == xp.float32)
        known = directions.reshape(n, -1)[:, :count]
        size = (known * known).mean(axis=0) ** 0.5
        columns = new[:, : known.shape[1]]
        columns[:] = xp.where(size > 0.0, known / size.clip(1e-300), columns)
        new *= float(np.sqrt(NEW_COLUMNS / count))
        return unit_rows(xp.hstack([V, new]))


def _target(gap: float) -> float:
    """The gain, relative to the value, at which that gap may be reached."""
    linear, quadratic = GAIN_AT_GAP
    return max(linear * gap, quadratic * gap * gap)
