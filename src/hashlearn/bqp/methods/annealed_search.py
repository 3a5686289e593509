"""The search on sparse problems: anneals, whose results are recombined or annealed again.

A short trial decides how. Eight short anneals are recombined by cluster crossover (`hashlearn.bqp.methods.clusters`).
If that gains more than the standard deviation of their values, the search goes on so (`CLUSTERS`). On tori with 6,000
nodes it gains 2 to 9 standard deviations, on other kinds of graphs at most 0.7. Otherwise, as on random graphs, it
spends half of its budget on a few long anneals and the other half on repeated cycles of mild heat from the best of them
(`CYCLES`).

The budget is a number of sweeps, which makes a run deterministic, or the time limit.
"""

from __future__ import annotations

import time

import numpy as np

from hashlearn.bqp.methods.annealing import MOST_PASSES, Annealer, Signs, without_diagonal
from hashlearn.bqp.methods.clusters import clusters
from hashlearn.bqp.methods.tabu import Walk
from hashlearn.bqp.operators import Structured
from hashlearn.bqp.state import SolveState
from hashlearn.core.arrays import FloatArray

CLUSTERS, CYCLES, ONE_ANNEAL = "anneals and cluster crossover", "anneals and cycles of heat", "one anneal"
# The default budget in steps of about a nanosecond, from this many variables on (smaller problems get their share of
# it), and the fewest sweeps, whatever they cost.
STEPS, FULL_BUDGET_FROM, FEWEST_SWEEPS = 1.5e9, 500, 60
# With fewer sweeps than this the whole budget is one anneal.
ONE_ANNEAL_SWEEPS = 1000
FIRST_PASSES = 2
UNBOUNDED = 10**9  # sweeps, where the clock ends an anneal
# The trial: the number of anneals, the fraction of the budget for each, and bounds on its sweeps.
TRIAL_ANNEALS, TRIAL_FRACTION, TRIAL_SWEEPS = 8, 1 / 100, (30, 300)
PARENTS = 3
# A round of crossover: the share of fresh anneals in what is left, bounds on the sweeps of one, and the most of them.
FRESH_FRACTION, FRESH_SWEEPS, MOST_FRESH = 0.5, (30, 300), 64
CROSSOVER_HEAT = 1.25
# A round of cycles: the most sweeps, half of them in fresh anneals, the others in cycles of 1/90 of all.
ROUND_SWEEPS, FRESH_ANNEALS, CYCLE_FRACTION, FEWEST_CYCLE_SWEEPS = 200_000, 8, 1 / 90, 50
CYCLE_HEAT = (0.3, 0.6)
# A sweep takes at most this many times the nanoseconds that its steps stand for.
SLOWEST = 3.0
# Kept free before a time limit: a fraction of what is left, and the sweeps of the last descent.
RESERVED_FRACTION, RESERVED_SWEEPS = 0.02, 4


class AnnealedSearch:
    """One search on one sparse problem, which proposes its points to ``state``."""

    def __init__(
        self, A: Structured, state: SolveState, rng: np.random.Generator, n_starts: int | None, max_sweeps: int | None
    ) -> None:
        self._state, self._rng = state, rng
        self._annealer = Annealer(without_diagonal(A.sparse), float(A.diagonal().sum()))
        self._fresh_anneals = n_starts or FRESH_ANNEALS
        self._most_fresh = n_starts or MOST_FRESH
        self._limited = max_sweeps is None and bool(np.isfinite(state.seconds_left))
        self._spent = 0.0
        steps = self._annealer.steps_per_sweep
        own = max(STEPS * min(1.0, A.n / FULL_BUDGET_FROM), FEWEST_SWEEPS * steps)
        self._budget = own if max_sweeps is None else max_sweeps * steps
        self._seconds_per_sweep = 1e-9 * steps

    def search(self, start: FloatArray | None) -> Walk:
        """Anneal until the budget is used up; returns the best point."""
        annealer = self._annealer
        x = annealer.random_signs(self._rng) if start is None else start
        # Annealing forgets the start, so a random one is improved only as far as a first answer needs it.
        begun = time.perf_counter()
        best = annealer.descend(x, self._propose, FIRST_PASSES if start is None else MOST_PASSES)
        self._count(best.moves, begun)
        left = self._sweeps_left()
        if left < ONE_ANNEAL_SWEEPS:
            self._state.details["engine"] = ONE_ANNEAL
            sweeps = UNBOUNDED if self._limited else left
            heat = 1.0 if start is None else CYCLE_HEAT[0]
            return min(best, self._anneal(x, sweeps, heat), key=_value)
        sweeps = _clipped(left * TRIAL_FRACTION, TRIAL_SWEEPS)
        parents = [self._fresh(sweeps) for _ in range(TRIAL_ANNEALS)]
        values = [parent.value for parent in parents]
        best = min(best, self._collapse(parents, sweeps), key=_value)
        recombines = min(values) - best.value > float(np.std(values))
        self._state.details["engine"] = CLUSTERS if recombines else CYCLES
        one_round = self._round_of_crossover if recombines else self._round_of_cycles
        while self._sweeps_left() >= FEWEST_CYCLE_SWEEPS:
            best = one_round(best)
        return best

    def _round_of_crossover(self, best: Walk) -> Walk:
        """Fresh anneals, recombined until one is left; ``best`` of the rounds before is one of them."""
        available = FRESH_FRACTION * self._sweeps_left()
        sweeps = _clipped(available / self._most_fresh, FRESH_SWEEPS)
        count = _clipped(available / sweeps, (1, self._most_fresh))
        pool = [best] + [self._fresh(sweeps) for _ in range(count)]
        return self._collapse(pool, sweeps)

    def _collapse(self, pool: list[Walk], sweeps: int) -> Walk:
        """Each child replaces its worst parent, until all values are equal or as many tries as members fail."""
        failed = 0
        while failed < len(pool) and len(set(map(_value, pool))) > 1 and self._sweeps_left() > FEWEST_CYCLE_SWEEPS:
            drawn = self._rng.choice(len(pool), min(PARENTS, len(pool)), replace=False)
            child = self._crossed([pool[i] for i in drawn], sweeps)
            worst = max(drawn, key=lambda i: pool[i].value)
            failed = failed + 1 if child.value >= pool[worst].value else 0
            pool[worst] = min(pool[worst], child, key=_value)
        return min(pool, key=_value)

    def _round_of_cycles(self, best: Walk) -> Walk:
        """Long anneals, then cycles of mild heat from the best of them."""
        left = min(self._sweeps_left(), ROUND_SWEEPS)
        end = self._sweeps_left() - left
        long = _clipped(0.5 * left / self._fresh_anneals, (FEWEST_CYCLE_SWEEPS, ROUND_SWEEPS))
        pool = [self._fresh(long)]
        while len(pool) < self._fresh_anneals and self._sweeps_left() - end >= 2 * long:
            pool.append(self._fresh(long))
        current = self._collapse(pool, min(long, FRESH_SWEEPS[1]))
        if best.value < current.value and self._rng.random() < 0.5:
            current = best
        cycle = max(FEWEST_CYCLE_SWEEPS, int(left * CYCLE_FRACTION))
        while self._sweeps_left() - end > FEWEST_CYCLE_SWEEPS:
            again = self._anneal(current.x, cycle, self._rng.uniform(*CYCLE_HEAT))
            current = min(again, current, key=_value)
        return min(best, current, key=_value)

    def _fresh(self, sweeps: int) -> Walk:
        return self._anneal(self._annealer.random_signs(self._rng), sweeps)

    def _anneal(self, x: Signs, sweeps: int, heat: float = 1.0) -> Walk:
        seconds = self._seconds_left() if self._limited else np.inf
        begun = time.perf_counter()
        walk = self._annealer.anneal(x, self._rng, sweeps, heat, self._tick, seconds)
        self._count(walk.moves, begun)
        self._propose(walk)
        return walk

    def _crossed(self, parents: list[Walk], sweeps: int) -> Walk:
        """The best found among the points that the clusters of the parents allow, never worse than the parents."""
        if len(parents) == 1:
            return parents[0]
        best = min(parents, key=_value)
        parents = [best] + [parent for parent in parents if parent is not best]
        small, cluster = clusters(self._annealer.matrix, [parent.x for parent in parents])
        self._tick()
        self._count(2)
        if small.nnz == 0:
            return best
        annealer = Annealer(small)
        seconds = self._seconds_left() if self._limited else np.inf
        y = annealer.anneal(np.ones(annealer.n), self._rng, sweeps, CROSSOVER_HEAT, self._tick, seconds)
        self._spent += y.moves * annealer.steps_per_sweep
        walk = self._annealer.descend(best.x * y.x[cluster])
        self._count(walk.moves)
        self._propose(walk)
        return min(walk, best, key=_value)

    def _propose(self, walk: Walk) -> None:
        if walk.value < self._state.value:
            self._state.propose(walk.x.astype(np.float64), walk.value)
        self._tick()

    def _tick(self) -> None:
        self._state.check_time("local search", None if self._limited else min(1.0, self._spent / self._budget))

    def _count(self, sweeps: int, begun: float | None = None) -> None:
        """Add the sweeps to the steps spent; those since ``begun`` tell how long a sweep takes."""
        self._spent += sweeps * self._annealer.steps_per_sweep
        if begun is not None and self._limited:
            # A pause of the machine must not be taken for slow sweeps.
            slowest = SLOWEST * 1e-9 * self._annealer.steps_per_sweep
            self._seconds_per_sweep = min((time.perf_counter() - begun) / sweeps, slowest)

    def _seconds_left(self) -> float:
        left = self._state.seconds_left
        return left - max(RESERVED_FRACTION * left, RESERVED_SWEEPS * self._seconds_per_sweep)

    def _sweeps_left(self) -> int:
        if self._limited:
            return int(self._seconds_left() / self._seconds_per_sweep)
        return int((self._budget - self._spent) / self._annealer.steps_per_sweep)


def _value(walk: Walk) -> float:
    return walk.value


def _clipped(wanted: float, bounds: tuple[int, int]) -> int:
    return int(min(max(wanted, bounds[0]), bounds[1]))
