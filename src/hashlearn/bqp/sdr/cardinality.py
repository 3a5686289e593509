"""The relaxation under a cardinality: min xᵀAx with Σx = s over all variables but the anchor, which is +1.

Bound: with e = 1 (0 at the anchor), every feasible x has (eᵀx)² = s². So min xᵀ(A + μ eeᵀ)x − μ s² is a lower bound for
every μ, and the relaxation (10) bounds it. It is concave in μ, and its slope is ‖Vᵀe‖² − s² at the relaxation's V. μ
grows until the slope is negative and shrinks until it is positive. Then two tangents are known, and the next μ is where
they meet. For s = 0 a larger μ is never worse.

Points: the variables with the largest projections of V become +1, as many as the sum asks for. Then pairs of one +1 and
one −1 exchange their signs while that lowers the value (`PairedSwaps`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from hashlearn.bqp.constraints import Cardinality
from hashlearn.bqp.error_bounds import added, below
from hashlearn.bqp.methods.swaps import PairedSwaps
from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.sdr.certificate import diagonal_bound
from hashlearn.bqp.sdr.relaxation import Relaxation
from hashlearn.bqp.solution import Run, Status
from hashlearn.core.arrays import EPS, FloatArray

Relaxed = Callable[[Operator, Run, np.random.Generator], Relaxation]

MULTIPLIERS = 6  # values of μ that are tried
STEP = 16.0  # factor from one to the next while all slopes have the same sign
LEVEL = 1e-3  # a slope below this · n is flat
DRAWS = 20  # rounded for each μ, at most
MOST_PASSES = 100  # of exchanges


def solve_with_cardinality(
    A: Operator,
    cardinality: Cardinality,
    relaxed: Relaxed,
    n_draws: int,
    run: Run,
    rng: np.random.Generator,
    x0: FloatArray | None,
) -> Status:
    """Offers points that keep the sum, and bounds for the constrained problem."""
    swaps = PairedSwaps(A, cardinality.anchor)

    def exchanged(x: FloatArray) -> FloatArray:
        return swaps.descend(x, MOST_PASSES, lambda walk: run.tick("exchanges")).x

    run.offer_bound(diagonal_bound(A))
    run.details["certificate"] = "diagonal"
    run.offer(_largest(rng.standard_normal(A.n), cardinality))
    start = None if x0 is None else cardinality.oriented(x0)
    if start is not None:
        run.offer(exchanged(start))
    e = np.ones(A.n)
    if cardinality.anchor is not None:
        e[cardinality.anchor] = 0.0
    square = float(cardinality.total) ** 2
    rising: _Tangent | None = None
    falling: _Tangent | None = None
    mu = _first_multiplier(A)
    for _ in range(MULTIPLIERS):
        shifted = _Shifted(run, mu * square * (1.0 + 4.0 * EPS))
        relaxation = relaxed(added(A, LowRank(e[:, None], np.array([mu]))), shifted, rng)
        if shifted.improved:
            run.details.update(certificate=shifted.details.get("certificate", relaxation.certificate), multiplier=mu)
            run.details.update(rank=relaxation.rank, relaxation_gap=relaxation.gap)
            run.tell(relaxation_value=relaxation.value - mu * square)
        V = relaxation.rows()
        for _ in range(min(n_draws, DRAWS)):
            run.tick("rounding")
            run.offer(exchanged(_largest(V @ rng.standard_normal(V.shape[1]), cardinality)))
        slope = float(np.sum((e @ V) ** 2)) - square
        if abs(slope) <= LEVEL * A.n:
            break
        tangent = _Tangent(mu, relaxation.value - mu * square, slope)
        rising, falling = (tangent, falling) if slope > 0.0 else (rising, tangent)
        if rising is None or falling is None:
            mu = mu * STEP if falling is None else mu / STEP
        else:
            mu = rising.meets(falling)
    return Status.CONVERGED


class _Tangent(NamedTuple):
    """The bound near one μ."""

    mu: float
    value: float
    slope: float

    def meets(self, other: _Tangent) -> float:
        """The μ where both tangents have the same value, kept between the two."""
        mu = (other.value - self.value + self.slope * self.mu - other.slope * other.mu) / (self.slope - other.slope)
        return float(np.clip(mu, min(self.mu, other.mu), max(self.mu, other.mu)))


def _first_multiplier(A: Operator) -> float:
    """A power of two near the size of a row of A: with it the sum costs as much as a few flips gain."""
    size = float(A.magnitudes().mean()) / A.n
    return float(2.0 ** np.ceil(np.log2(max(4.0 * size, 1e-290))))


class _Shifted(Run):
    """A run whose bounds are lowered by μ s² before they reach the run of the caller. Points are not passed on."""

    def __init__(self, run: Run, shift: float) -> None:
        super().__init__(run.A, run.method)
        self._run, self._shift = run, shift
        self.improved = False

    @property
    def seconds(self) -> float:
        return self._run.seconds

    @property
    def seconds_left(self) -> float:
        return self._run.seconds_left

    def offer(self, x: Any, value: float | None = None) -> bool:
        return False

    def offer_bound(self, bound: float | Fraction) -> bool:
        better = self._run.offer_bound(below(float(bound) - self._shift))
        self.improved = self.improved or better
        return better

    def tick(self, stage: str, fraction: float | None = None) -> None:
        self._run.tick(stage, fraction)


def _largest(projections: FloatArray, cardinality: Cardinality) -> FloatArray:
    """+1 for the largest projections, after a mirror that makes the anchor's positive."""
    anchor, keys = cardinality.anchor, np.array(projections, dtype=np.float64)
    if anchor is not None:
        keys *= -1.0 if keys[anchor] < 0.0 else 1.0
        keys[anchor] = -np.inf
    free = len(keys) - (anchor is not None)
    x = np.full(len(keys), -1.0)
    x[np.argsort(-keys, kind="stable")[: (free + cardinality.total) // 2]] = 1.0
    if anchor is not None:
        x[anchor] = 1.0
    return x
