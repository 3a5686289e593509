"""Simulated annealing of single flips on a sparse A, and the search that is made of anneals.

**An anneal** holds gain_i = x_i Σ_{j≠i} a_ij x_j: flipping x_i lowers xᵀAx by 4·gain_i. A sweep visits all variables in
order and costs O(n + flips · degree). It flips i if −gain_i ≤ T·e with e drawn from the exponential distribution (the
Metropolis rule without an exponential: e comes from a table of 4,096 quantiles). The temperature T falls geometrically.
It is measured in the norms of the rows of A, which are the sizes of gains of random signs. An anneal ends with a few
sweeps at T = 0.

**Cluster crossover** makes one variable of all those that several solutions relate in the same way. Two neighbors i and
j belong together if x_i x_j is the same in every parent, and clusters are the connected components of this relation.
With x the best parent and y_c = ±1 for cluster c, the point x_i y_c(i) has the value of a smaller problem in y with
weights Σ a_ij x_i x_j over the pairs between two clusters. Every parent is a point of it, so its optimum is at least as
good as the best of them. On tori and other graphs of low dimension parents differ by many separate clusters, and the
smaller problem combines the best parts of all (Houdayer and Martin, 1999).

**The search** decides by a trial. Eight short anneals are recombined by cluster crossover. If that gains more than the
standard deviation of their values, the search goes on so (`CLUSTERS`). On tori with 6,000 nodes it gains 2 to 9
standard deviations, on other kinds of graphs at most 0.7. Otherwise, as on random graphs, it spends half of its budget
on a few long anneals and the other half on repeated cycles of mild heat from the best of them (`CYCLES`). The budget is
a number of sweeps, which makes a run deterministic, or the time limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from hashlearn.bqp.flips import MAX_PASSES, Descent, Signs
from hashlearn.bqp.methods.tabu import Walk, draw
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.state import SolveState
from hashlearn.core.arrays import FloatArray

# Temperatures of a full anneal. HOT multiplies the root mean square of the row norms, COLD their geometric mean.
# A good choice among HOT 0.3, 0.4, 0.6 and COLD 0.03, 0.06, 0.1 on G14, G22, G51, G60 and three generated graphs.
HOT, COLD = 0.4, 0.06
QUANTILES = -np.log((np.arange(4096) + 0.5) / 4096.0)
# Nanoseconds in one piece, and in a visit and for each neighbor: what sweeps of the default budget are counted by.
PIECE = 20_000_000
VISIT, NEIGHBOR = 8.0, 0.5
LARGEST_FLOAT32 = 2.0**24  # integers up to here are exact in float32
FEWEST_SWEEPS, SWEEPS_AT_ZERO = 4, 3  # of an anneal

CLUSTERS, CYCLES, ONE_ANNEAL = "anneals and cluster crossover", "anneals and cycles of heat", "one anneal"
# The default budget in steps of about a nanosecond, from this many variables on (smaller problems get their share of
# it), and the fewest sweeps, whatever they cost. With fewer sweeps than the last number the whole budget is one anneal.
STEPS, FULL_BUDGET_FROM, SMALLEST_BUDGET, ONE_ANNEAL_SWEEPS = 1.5e9, 500, 60, 1000
UNBOUNDED = 10**9  # sweeps, where the clock ends an anneal
# The trial: the number of anneals, the fraction of the budget for each, and bounds on the sweeps of short anneals.
TRIAL_ANNEALS, TRIAL_FRACTION, SHORT_SWEEPS = 8, 1 / 100, (30, 300)
# A round of crossover: the parents of a child, the share of fresh anneals in what is left, and the most of them.
PARENTS, FRESH_FRACTION, MOST_FRESH, CROSSOVER_HEAT = 3, 0.5, 64, 1.25
# A round of cycles: the most sweeps, half of them in fresh anneals, the others in cycles of 1/90 of all.
ROUND_SWEEPS, FRESH_ANNEALS, CYCLE_FRACTION, FEWEST_CYCLE_SWEEPS = 200_000, 8, 1 / 90, 50
CYCLE_HEAT = (0.3, 0.6)
# A sweep takes at most this many times the nanoseconds that its steps stand for.
SLOWEST = 3.0
# Left free before a time limit: a fraction of what is left, and the sweeps at temperature 0 and of the descent.
RESERVED_FRACTION, RESERVED_SWEEPS = 0.02, 8


class Annealer:
    """Anneals on one matrix without a diagonal, from any signs. ``between`` is called after every piece of work.

    Weights that are small integers times a common unit are held in float32, where their sums are exact.
    """

    def __init__(self, matrix: sp.csr_array, between: Callable[[], Any] = lambda: None) -> None:
        self.n = matrix.shape[0]
        self._between = between
        weights = _in_units(matrix)
        self.matrix = sp.csr_array((weights, matrix.indices, matrix.indptr), shape=matrix.shape)
        # One type each, so that the kernels are compiled once.
        indices, indptr = matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False)
        self._parts = weights, indices, indptr
        self._quantiles = QUANTILES.astype(weights.dtype)
        squares = np.add.reduceat(np.append(weights.astype(np.float64) ** 2, 0.0), indptr[:-1])[np.diff(indptr) > 0]
        self._hot = HOT * float(np.sqrt(squares.mean())) if len(squares) else 1.0
        self._cold = COLD * float(np.exp(0.5 * np.log(squares).mean())) if len(squares) else 1.0
        # Beyond the processor's caches every gain that changes is fetched from memory.
        self.steps_per_sweep = (VISIT * self.n + NEIGHBOR * len(weights)) * (1.0 + min(4.0, self.n / 200_000))
        self._most_visits = max(1000, int(PIECE * self.n / self.steps_per_sweep))

    def anneal(
        self, x: Signs, rng: np.random.Generator, n_sweeps: int, heat: float = 1.0, seconds: float = np.inf
    ) -> tuple[Signs, int]:
        """From the signs x at ``heat`` times the hottest temperature down to the coldest, then at temperature 0.

        Returns the signs and the number of sweeps. With ``seconds`` the temperature falls with the clock instead where
        that is sooner: it then reaches the coldest at their end.
        """
        x = x.astype(self.matrix.dtype)
        gain = x * (self.matrix @ x)
        random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        hot = max(heat * self._hot, self._cold)
        n_sweeps = max(n_sweeps, FEWEST_SWEEPS)

        def sweep(temperatures: FloatArray) -> None:
            for first in range(0, self.n, self._most_visits):
                last = min(first + self._most_visits, self.n)
                state = x, gain, temperatures.astype(x.dtype), self._quantiles, random
                _sweep(*self._parts, *state, first, last)
                self._between()

        done, began, sweeps = 0.0, time.perf_counter(), 0
        while done < 1.0 - 1e-9:
            step = 1.0 / n_sweeps
            if seconds < np.inf and sweeps > 0:
                spent = time.perf_counter() - began
                step = max(step, (1.0 - done) * (spent / sweeps) / max(seconds - spent, 1e-9))
            count = max(1, min(self._most_visits // self.n, round((1.0 - done) / step), 1 + sweeps))
            fractions = np.minimum(done + step * np.arange(count), 1.0)
            sweep(hot * (self._cold / hot) ** fractions)
            sweeps += count
            done += step * count
        sweep(np.zeros(SWEEPS_AT_ZERO))
        return x.astype(np.int8), sweeps + SWEEPS_AT_ZERO


class AnnealedSearch:
    """One search on one sparse problem, which proposes its points to ``state``."""

    def __init__(
        self, A: Operator, state: SolveState, rng: np.random.Generator, n_starts: int | None, max_sweeps: int | None
    ) -> None:
        self._state, self._rng = state, rng
        self._A, self._descent = A, Descent(A)
        self._annealer = Annealer(A.without_diagonal()[0].sparse if A.diagonal().any() else A.sparse, self._check_time)
        self._fresh_anneals, self._most_fresh = n_starts or FRESH_ANNEALS, n_starts or MOST_FRESH
        self._has_limit = max_sweeps is None and bool(np.isfinite(state.seconds_left))
        steps = self._annealer.steps_per_sweep
        self._spent = 0.0
        self._budget = max_sweeps or max(STEPS * min(1.0, A.n / FULL_BUDGET_FROM) / steps, SMALLEST_BUDGET)
        self._seconds_per_sweep = 1e-9 * steps

    def search(self, start: Signs | None) -> None:
        """Anneal until the budget is spent."""
        x = self._random_signs() if start is None else start
        # Annealing forgets the start, so a random one is improved only as far as a first answer needs it.
        began = time.perf_counter()
        best = self._descend(x, 1)
        self._count(1, began)
        if start is not None:
            best = self._descend(best.x)
        left = self._sweeps_left()
        if left < ONE_ANNEAL_SWEEPS:
            self._state.details["engine"] = ONE_ANNEAL
            self._anneal(x, UNBOUNDED if self._has_limit else left, 1.0 if start is None else CYCLE_HEAT[0])
            return
        sweeps = _clipped(left * TRIAL_FRACTION, SHORT_SWEEPS)
        parents = [self._fresh(sweeps) for _ in range(TRIAL_ANNEALS)]
        values = [parent.value for parent in parents]
        best = min(best, self._collapse(parents, sweeps), key=_value)
        recombines = min(values) - best.value > float(np.std(values))
        self._state.details["engine"] = CLUSTERS if recombines else CYCLES
        one_round = self._round_of_crossover if recombines else self._round_of_cycles
        while self._sweeps_left() >= FEWEST_CYCLE_SWEEPS:
            best = one_round(best)

    def _round_of_crossover(self, best: Walk) -> Walk:
        """Fresh anneals, recombined until one is left; ``best`` of the rounds before is one of them."""
        available = FRESH_FRACTION * self._sweeps_left()
        sweeps = _clipped(available / self._most_fresh, SHORT_SWEEPS)
        count = _clipped(available / sweeps, (1, self._most_fresh))
        return self._collapse([best] + [self._fresh(sweeps) for _ in range(count)], sweeps)

    def _round_of_cycles(self, best: Walk) -> Walk:
        """Long anneals, then cycles of mild heat from the best of them."""
        left = min(self._sweeps_left(), ROUND_SWEEPS)
        end = self._sweeps_left() - left
        long = _clipped(0.5 * left / self._fresh_anneals, (FEWEST_CYCLE_SWEEPS, ROUND_SWEEPS))
        pool = [self._fresh(long)]
        while len(pool) < self._fresh_anneals and self._sweeps_left() - end >= 2 * long:
            pool.append(self._fresh(long))
        current = self._collapse(pool, min(long, SHORT_SWEEPS[1]))
        if best.value < current.value and self._rng.random() < 0.5:
            current = best
        cycle = max(FEWEST_CYCLE_SWEEPS, int(left * CYCLE_FRACTION))
        while self._sweeps_left() - end > FEWEST_CYCLE_SWEEPS:
            current = min(self._anneal(current.x, cycle, self._rng.uniform(*CYCLE_HEAT)), current, key=_value)
        return min(best, current, key=_value)

    def _collapse(self, pool: list[Walk], sweeps: int) -> Walk:
        """Recombine random triples; a child replaces its worst parent.

        Ends when all members have the same value, or after as many children in a row without a gain as there are
        members.
        """
        failures = 0
        while failures < len(pool) and len(set(map(_value, pool))) > 1 and self._sweeps_left() > FEWEST_CYCLE_SWEEPS:
            triple = self._rng.choice(len(pool), min(PARENTS, len(pool)), replace=False)
            child = self._crossed([pool[i] for i in triple], sweeps)
            worst = max(triple, key=lambda i: pool[i].value)
            failures = failures + 1 if child.value >= pool[worst].value else 0
            pool[worst] = min(pool[worst], child, key=_value)
        return min(pool, key=_value)

    def _crossed(self, parents: list[Walk], sweeps: int) -> Walk:
        """A good point among those that the clusters of the parents allow, never worse than the parents."""
        parents = sorted(parents, key=_value)
        small, cluster = clusters(self._annealer.matrix, [parent.x for parent in parents])
        self._check_time()
        self._spent += 2
        if small.nnz == 0:
            return parents[0]
        annealer = Annealer(small, self._check_time)
        ones = np.ones(annealer.n)
        y, made = annealer.anneal(ones, self._rng, sweeps, CROSSOVER_HEAT, self._seconds_left())
        self._spent += made * annealer.steps_per_sweep / self._annealer.steps_per_sweep
        return min(self._descend(parents[0].x * y[cluster]), parents[0], key=_value)

    def _fresh(self, sweeps: int) -> Walk:
        return self._anneal(self._random_signs(), sweeps)

    def _random_signs(self) -> Signs:
        return 2 * self._rng.integers(0, 2, size=self._annealer.n, dtype=np.int8) - 1

    def _anneal(self, x: Signs, sweeps: int, heat: float = 1.0) -> Walk:
        began = time.perf_counter()
        x, made = self._annealer.anneal(x, self._rng, sweeps, heat, self._seconds_left())
        self._count(made, began)
        self._propose(x.astype(np.float64))  # the time may end before the descent does
        return self._descend(x)

    def _descend(self, x: Signs, max_passes: int = MAX_PASSES) -> Walk:
        """Flips that lower the value, until there are none or ``max_passes`` passes are made."""
        end = self._descent.descend(x.astype(np.float64), max_passes, self._check_time)
        self._spent += 1
        walk = Walk(end.astype(np.int8), self._propose(end), 0)
        self._check_time()
        return walk

    def _propose(self, x: FloatArray) -> float:
        value = self._A.value(x)
        if value < self._state.value:
            self._state.propose(x, value)
        return value

    def _count(self, sweeps: int, began: float) -> None:
        """Add to the sweeps spent; the seconds since ``began`` tell how long a sweep takes."""
        self._spent += sweeps
        # A pause of the machine must not be taken for slow sweeps.
        slowest = SLOWEST * 1e-9 * self._annealer.steps_per_sweep
        self._seconds_per_sweep = min((time.perf_counter() - began) / sweeps, slowest)

    def _check_time(self) -> None:
        self._state.check_time("local search", None if self._has_limit else min(1.0, self._spent / self._budget))

    def _seconds_left(self) -> float:
        if not self._has_limit:
            return np.inf
        left = self._state.seconds_left
        return left - max(RESERVED_FRACTION * left, RESERVED_SWEEPS * self._seconds_per_sweep)

    def _sweeps_left(self) -> int:
        return int(self._seconds_left() / self._seconds_per_sweep if self._has_limit else self._budget - self._spent)


def clusters(matrix: sp.csr_array, parents: Sequence[Signs]) -> tuple[sp.csr_array, NDArray[np.int32]]:
    """The problem in one sign for each cluster of ``parents``, and the cluster of each variable; O(nonzeros).

    All +1 is the first parent. No diagonal in, none out.

    >>> chain = sp.csr_array(np.eye(4, k=1) + np.eye(4, k=-1))
    >>> small, cluster = clusters(chain, [np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, -1.0, -1.0, 1.0])])
    >>> cluster, small.toarray()
    (array([0, 0, 1, 1], dtype=int32), array([[ 0., -1.],
           [-1.,  0.]]))
    """
    x, key = parents[0], np.zeros(matrix.shape[0], np.int64)
    for other in parents[1:]:
        key = 2 * key + (other == x)
    rows, columns = np.repeat(np.arange(len(x)), np.diff(matrix.indptr)), matrix.indices
    together = key[rows] == key[columns]
    joined = sp.coo_array((together[together], (rows[together], columns[together])), shape=matrix.shape)
    count, cluster = connected_components(joined.tocsr(), directed=False)
    i, j = cluster[rows], cluster[columns]
    between = i != j
    weights = (matrix.data * x[rows] * x[columns])[between]
    small = sp.coo_array((weights, (i[between], j[between])), shape=(count, count)).tocsr()
    small.eliminate_zeros()
    return small, cluster


def _in_units(matrix: sp.csr_array) -> NDArray[Any]:
    """Weights as float32 integers of a common unit if all sums of weights are exact there, else the float64 weights."""
    sizes = np.abs(matrix.data)
    smallest, largest = float(sizes.min(initial=np.inf)), float(sizes.max(initial=0.0))
    widest = int(np.diff(matrix.indptr).max(initial=0))
    for unit in (smallest, 1.0):
        if 0.0 < unit < np.inf and widest * largest < LARGEST_FLOAT32 * unit:
            whole = np.rint(matrix.data / unit)
            if np.array_equal(whole * unit, matrix.data):
                return whole.astype(np.float32)
    return matrix.data


def _value(walk: Walk) -> float:
    return walk.value


def _clipped(number: float, bounds: tuple[int, int]) -> int:
    return int(min(max(number, bounds[0]), bounds[1]))


@njit(cache=True, nogil=True)
def _sweep(  # type: ignore[no-untyped-def]
    data, indices, indptr, x, gain, temperatures, quantiles, random, first, last
):
    """One sweep over first…last − 1 for each temperature."""
    for temperature in temperatures:
        least = -quantiles[0] * temperature
        for i in range(first, last):
            g = gain[i]
            if g < least:
                continue
            if g < 0.0 and -g > temperature * quantiles[draw(random) >> np.uint64(52)]:
                continue
            twice = x[i] + x[i]
            for q in range(indptr[i], indptr[i + 1]):
                k = indices[q]
                gain[k] -= twice * data[q] * x[k]
            x[i] = -x[i]
            gain[i] = -gain[i]
