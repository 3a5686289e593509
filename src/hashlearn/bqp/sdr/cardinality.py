"""The relaxation under a cardinality: min xᵀAx with Σx = s over all variables but the anchor, which is +1.

Bound: with e = 1 (0 at the anchor), every feasible x has (eᵀx)² = s². So min xᵀ(A + μ eeᵀ)x − μ s² is a lower bound for
every μ, and the relaxation (10) bounds it. It is concave in μ, and its slope is ‖Vᵀe‖² − s² at the relaxation's V. μ
grows until the slope is negative and shrinks until it is positive. Then two tangents are known, and the next μ is where
they meet. For s = 0 a larger μ is never worse.

Points: the variables with the largest projections of V become +1, as many as the sum asks for. Then pairs of one +1 and
one −1 exchange their signs while that lowers the value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hashlearn.bqp.constraints import Cardinality
from hashlearn.bqp.error_bounds import added, below
from hashlearn.bqp.operators import LowRank, Operator, Sparse
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
    rounding = _Rounding(A, cardinality)
    run.offer_bound(diagonal_bound(A))
    run.details["certificate"] = "diagonal"
    run.offer(rounding.signs(rng.standard_normal(A.n)))
    if x0 is not None and rounding.is_feasible(x0):
        run.offer(rounding.exchanged(x0, run))
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
            run.offer(rounding.exchanged(rounding.signs(V @ rng.standard_normal(V.shape[1])), run))
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

    def offer_bound(self, bound: float) -> bool:
        better = self._run.offer_bound(below(bound - self._shift))
        self.improved = self.improved or better
        return better

    def tick(self, stage: str, fraction: float | None = None) -> None:
        self._run.tick(stage, fraction)


class _Rounding:
    """Signs with the right sum, and exchanges that keep it."""

    def __init__(self, A: Operator, cardinality: Cardinality) -> None:
        self.A, self.anchor, self.total = A, cardinality.anchor, cardinality.total
        free = A.n - (self.anchor is not None)
        self.positive = (free + self.total) // 2
        self._diagonal = A.diagonal()

    def is_feasible(self, x: FloatArray) -> bool:
        rest = 0.0 if self.anchor is None else 1.0
        return bool(x.sum() - rest == self.total and (self.anchor is None or x[self.anchor] == 1.0))

    def signs(self, projections: FloatArray) -> FloatArray:
        """+1 for the largest projections, after a mirror that makes the anchor's positive."""
        keys = np.array(projections, dtype=np.float64)
        if self.anchor is not None:
            keys *= -1.0 if keys[self.anchor] < 0.0 else 1.0
            keys[self.anchor] = -np.inf
        x = np.full(self.A.n, -1.0)
        x[np.argsort(-keys, kind="stable")[: self.positive]] = 1.0
        if self.anchor is not None:
            x[self.anchor] = 1.0
        return x

    def exchanged(self, x: FloatArray, run: Run) -> FloatArray:
        """Passes of exchanges: the most promising +1 with the most promising −1, and so on."""
        x = np.array(x, dtype=np.float64)
        field = self.A @ x
        noise = 1e-12 * float(np.abs(field).sum())
        for _ in range(MOST_PASSES):
            run.tick("exchanges")
            change = 4.0 * (self._diagonal - x * field)  # of the value, by a flip
            if self.anchor is not None:
                change[self.anchor] = np.inf
            order = np.argsort(change, kind="stable")
            up, down = order[x[order] > 0.0], order[x[order] < 0.0]
            count = min(len(up), len(down))
            hopeful = np.flatnonzero(change[up[:count]] + change[down[:count]] < 0.0)
            made = 0
            for q in hopeful:
                if q % 256 == 255:
                    run.tick("exchanges")
                made += self._exchange(x, field, int(up[q]), int(down[q]), noise)
            if not made:
                break
        return x

    def _exchange(self, x: FloatArray, field: FloatArray, i: int, j: int, noise: float) -> int:
        """Exchange the signs of i and j if that lowers the value, and update the products."""
        row, entries = self._row(i)
        between = float(entries[row == j].sum()) if isinstance(self.A, Sparse) else float(entries[j])
        flips = self._diagonal[i] - x[i] * field[i] + self._diagonal[j] - x[j] * field[j]
        if not 4.0 * flips + 8.0 * x[i] * x[j] * between < -noise:
            return 0
        field[row] -= 2.0 * x[i] * entries
        row, entries = self._row(j)
        field[row] -= 2.0 * x[j] * entries
        x[i], x[j] = -x[i], -x[j]
        return 1

    def _row(self, i: int) -> tuple[Any, FloatArray]:
        if isinstance(self.A, Sparse):
            matrix = self.A.matrix
            part = slice(matrix.indptr[i], matrix.indptr[i + 1])
            return matrix.indices[part], matrix.data[part]
        return slice(None), self.A.row(i)
