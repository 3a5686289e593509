"""The relaxation (10) over unit rows V (n × k) with X = VVᵀ, for every kind of operator. It needs rows of A only.

1. Over-relaxed sweeps (`MixingSweeps`) until rows hardly move. The factor ω rises towards 2 with the number of sweeps.
2. The certificate with y_i = a_ii − ‖g_i‖. If its gap is much wider than what the sweeps could still gain, V is near a
   point that more columns would leave. V then gets half as many columns again, along the directions that the
   certificate found, and the sweeps go on.
3. Up to 8,000 rows, Newton steps if the gap comes from slow convergence; beyond, more sweeps.

A large problem is swept in float32 until that limits the gap. With a time limit, half of it is for sweeps and a quarter
for the certificate. Points and bounds on the way are offered after 8, 32, 128, … sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hashlearn.bqp.operators import Operator
from hashlearn.bqp.sdr.certificate import Certificate, dual_bound
from hashlearn.bqp.sdr.chebyshev import MOST_TESTS
from hashlearn.bqp.sdr.mixing import MixingSweeps
from hashlearn.bqp.sdr.newton import newton_steps, normalize
from hashlearn.bqp.sdr.rounding import Relaxation, Tolerance
from hashlearn.bqp.solution import Run
from hashlearn.core.arrays import FloatArray
from hashlearn.core.thresholds import NEWTON_ROWS, SINGLE_PRECISION_NUMBERS

# ω = 2 − DELAY/(sweeps + DELAY); after a change of rank the count begins at RESTART.
DELAY, RESTART = 4.0, 16
# Sweeps pause for a certificate when a sweep can gain this fraction of the gap that is allowed. The proven gap was
# measured as 4 to 66 times the gain of one sweep, on grids, regular and random graphs of 2,000 to 200,000 nodes.
GAIN_AT_GAP = 1.0 / 150.0
STUCK = 1000.0  # a gap that is more than this many gains comes from too few columns
MOST_SWEEPS, SWEEPS_BEFORE_NEWTON = 3000, 400  # without a certificate
SMALLEST_GAIN = 1e-14  # relative to the value: rounding
SINGLE_PRECISION_GAP = 2e-5  # smaller gaps need float64
NEW_COLUMNS = 0.05  # squared length of the new part of each row
# Shares of a time limit: until the sweeps end, and for the last certificate and those on the way.
SWEEPS_SHARE, LAST_SHARE, EARLY_SHARE = 0.5, 0.25, 0.04
FIRST_EARLY = 8  # sweeps before the first point and bound on the way; then four times as many each time
MOST_ROUNDS = MOST_TESTS - 16  # one test in each round; the others are for bounds on the way, far fewer than 16

OnTheWay = Callable[[FloatArray], Any]


def relax_general(
    A: Operator,
    tolerance: Tolerance,
    rank: int,
    rng: np.random.Generator,
    run: Run,
    on_the_way: OnTheWay | None = None,
) -> Relaxation:
    """Solve (10) to a certified gap; ``on_the_way`` is called with V now and then. See `Relaxation` for the result."""
    return _Solve(A, tolerance, rng, run, on_the_way).result(rank)


def columns_for(n: int) -> int:
    """Columns of V to begin with. Random regular graphs need about n^⅓ for a gap of 1e-4, grids fewer."""
    return 8 * int(np.ceil(n ** (1.0 / 3.0) / 8.0))


class _Solve:
    """The state of one relaxation."""

    def __init__(
        self, A: Operator, tolerance: Tolerance, rng: np.random.Generator, run: Run, on_the_way: OnTheWay | None
    ) -> None:
        self.A, self.tolerance, self.rng, self.run, self.on_the_way = A, tolerance, rng, run, on_the_way
        self.early_rng = rng.spawn(1)[0]
        self.limit = run.seconds + run.seconds_left
        self.most_columns = int(np.sqrt(2 * A.n)) + 8  # every minimum with more columns is global
        self.sweeps = MixingSweeps(A)
        self.since = 0  # sweeps since the last change of rank, RESTART included
        self.made = 0
        self.next_early = FIRST_EARLY
        self.gain = np.inf
        self.kind = "none"
        self.bound = -np.inf

    def result(self, rank: int) -> Relaxation:
        """Rounds of sweeps and certificates."""
        A, tolerance = self.A, self.tolerance
        width = min(max(rank, columns_for(A.n)), A.n)
        single = A.is_sparse and A.n * width > SINGLE_PRECISION_NUMBERS
        V: Any = self.rng.standard_normal((A.n, width)).astype(np.float32 if single else np.float64)
        normalize(V)
        best, value = V, np.inf
        target, gradient = GAIN_AT_GAP * tolerance.relative, 0.03 * np.sqrt(tolerance.relative)
        self._settle(V, target)
        for _ in range(min(tolerance.max_rounds, MOST_ROUNDS)):
            certificate, f = self._certified(V)
            if f < value:
                best, value = V, f
            if tolerance.met(value, self.bound) or self._is_late():
                break
            gap = f - certificate.bound
            if gap > STUCK * self.gain and V.shape[1] < self.most_columns:
                best = V.copy() if best is V else best
                V = self._wider(V, certificate.direction)
                self._settle(V, target)
            elif self.gain <= SMALLEST_GAIN * self.sweeps.norms.sum():
                break
            elif A.n <= NEWTON_ROWS:
                V = newton_steps(A, V, gradient, tolerance.scale, self.run)
                gradient *= 0.03
            else:
                target *= min(0.3, 0.5 * tolerance.relative * self._size() / gap)
                if V.dtype == np.float32 and target < GAIN_AT_GAP * SINGLE_PRECISION_GAP:
                    V = V.astype(np.float64)
                self._settle(V, target)
        if best.dtype != np.float64:
            best = best.astype(np.float64)
        return Relaxation(A, value, self.bound, best.shape[1], self.kind, unit_rows=best)

    def _settle(self, V: FloatArray, target: float) -> None:
        """Sweep until a sweep gains less than ``target`` of the value, or time or patience is over."""
        tick = partial(self.run.tick, "sweeps")
        for _ in range(MOST_SWEEPS if self.A.n > NEWTON_ROWS else SWEEPS_BEFORE_NEWTON):
            omega = 2.0 - DELAY / (self.since + DELAY)
            self.gain = self.sweeps.sweep(V, omega, tick)
            self.since += 1
            self.made += 1
            if self._is_late():
                return
            if self.gain <= max(target * self._size(), SMALLEST_GAIN * self.sweeps.norms.sum()):
                return
            if self.made >= self.next_early and self.on_the_way is not None:
                self.next_early *= 4
                self._on_the_way(V)

    def _size(self) -> float:
        """What a gap is measured against: see `Tolerance.met`."""
        return max(abs(self.sweeps.dual_value()), 1e-3 * self.tolerance.scale)

    def _on_the_way(self, V: FloatArray) -> None:
        assert self.on_the_way is not None
        self.on_the_way(V)
        if self.limit < np.inf:
            value, y = self.sweeps.dual(V)
            enough = value - 0.1 * abs(value)
            self._offer(dual_bound(self.A, y, self.early_rng, self._tick, enough, 0, EARLY_SHARE * self.limit))
            self.run.tell(relaxation_value=value)

    def _certified(self, V: FloatArray) -> tuple[Certificate, float]:
        self._tick()
        value, y = self.sweeps.dual(V)
        self.gain = 2.0 * (value - float(y.sum()))
        seconds = max(LAST_SHARE * self.limit, 0.0) if self.limit < np.inf else np.inf
        enough = self.tolerance.enough(value)
        certificate = dual_bound(self.A, y, self.rng, self._tick, enough, self.tolerance.proof_limit, seconds)
        self._offer(certificate)
        return certificate, value

    def _offer(self, certificate: Certificate) -> None:
        if certificate.bound > self.bound:
            self.bound, self.kind = certificate.bound, certificate.kind
        if self.run.offer_bound(certificate.bound):
            self.run.details["certificate"] = certificate.kind

    def _tick(self) -> None:
        self.run.tick("certificate")

    def _is_late(self) -> bool:
        return self.run.seconds_left < (1.0 - SWEEPS_SHARE) * self.limit < np.inf

    def _wider(self, V: FloatArray, direction: FloatArray) -> FloatArray:
        """V with half as many columns again: the directions that the certificate gave, then random ones."""
        n, width = V.shape
        count = min(8 * max(1, round(width / 16)), self.most_columns + 8 - width)
        new = self.rng.standard_normal((n, count))
        known = direction.reshape(n, -1)[:, :count]
        size = np.sqrt(np.mean(known * known, axis=0))
        there = size > 0.0
        new[:, : known.shape[1]][:, there] = known[:, there] / size[there]
        wider = np.hstack([V, (np.sqrt(NEW_COLUMNS / count) * new).astype(V.dtype)])
        normalize(wider)
        self.since = RESTART
        return wider
