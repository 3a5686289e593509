"""Local search for min xᵀAx, eq. (5): anneals on sparse problems, a pool of tabu walks or descents on the others.

A tabu move costs O(n), a sweep of an anneal O(nonzeros). The default budget is a fixed amount of work, one to three
seconds, or a few moves for each variable if that is more. Up to 2,048 variables a low-rank A is made dense. Beyond,
sweeps of O(n · rank) replace tabu moves, and no n × n array exists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from hashlearn.bqp.flips import Descent
from hashlearn.bqp.methods.annealing import AnnealedSearch
from hashlearn.bqp.methods.augmented_lagrangian import dual_feasible_start
from hashlearn.bqp.methods.spectral import sign
from hashlearn.bqp.methods.tabu import FEWEST_STARTS, MOST_STARTS, TabuWalks, Walk
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.rows import Array
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number
from hashlearn.core.thresholds import LARGEST_DENSIFIED

# The default budget of descents: multiply-adds of all sweeps, and the fewest sweeps, of all starts and of one.
SWEEP_STEPS, FEWEST_SWEEPS, FEWEST_SWEEPS_PER_START = 2e9, 24, 12
# Walks without a better value after which the default search ends, for each place in the pool.
IDLE_WALKS = 20
PERTURBED_FRACTION = 0.02  # of the signs of a child
# Up to this rank an eigenvector of 2,048 rows takes less time than one walk.
SPECTRAL_RANK = 200


@dataclass(frozen=True)
class LocalSearch(Solver):
    """Searches by flips from several starts whose results are combined. A bound only for up to 20 variables.

    Each kind of problem has one engine, which ``details["engine"]`` names:

    - sparse A: anneals (`annealing.AnnealedSearch`), after variables of few neighbors were eliminated, which is exact
    - dense A, and any other A of up to 2,048 distinct rows: tabu walks (`tabu.TabuWalks`) whose results form a pool
    - other A of more distinct rows: descents by single flips whose results form a pool
    - P a tensor: descents by single flips from all starts at once, batches of rows at a time, without a pool
    - up to 20 distinct rows, without ``max_iter``: enumeration, which proves the optimum

    Parameters
    ----------
    n_starts : size of the pool and number of starts, or of fresh anneals in a round; None: 16 starts (8 or 64 anneals),
        or fewer (2 at least) when n is so large that the default budget allows fewer than 6 walks for each
    max_iter : iterations in total, an iteration being a tabu move, or a sweep where sweeps are used. None: one to
        three seconds of work; under a ``time_limit``, until the limit

    Examples
    --------
    >>> import numpy as np
    >>> from hashlearn import bqp
    >>> ring = np.roll(np.eye(40), 1, axis=1)
    >>> bqp.solve(ring + ring.T, bqp.LocalSearch(n_starts=4), random_state=0).value
    -80.0
    """

    n_starts: int | None = None
    max_iter: int | None = None

    name: ClassVar[str] = "local_search"
    merges = eliminates = takes_tensors = True

    @property
    def enumerates(self) -> bool:  # type: ignore[override]
        """A number of iterations asks for a search."""
        return self.max_iter is None

    def __post_init__(self) -> None:
        for name in ("n_starts", "max_iter"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), name, least=1)

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: Array | None) -> Status:
        """Propose ever better points until the budget or the time limit ends it."""
        if not A.rows.on_host:
            self._descend_on_device(A, state, rng, x0)
        elif A.is_sparse:
            AnnealedSearch(A, state, rng, self.n_starts, self.max_iter).search(x0)
            if self.max_iter is None and np.isfinite(state.seconds_left):
                return Status.TIME_LIMIT
        else:
            fits = A.n <= LARGEST_DENSIFIED
            engine = (TabuWalks if fits or A.is_dense else _Descents)(A, self.n_starts)
            state.details["engine"] = engine.name
            has_vector = fits and A.is_low_rank and A.rank <= SPECTRAL_RANK
            _Pool(engine, state, rng, _starts(A, state, rng, x0, has_vector)).evolve(self.max_iter)
        return Status.CONVERGED if self.max_iter is None else Status.ITERATION_LIMIT

    def _descend_on_device(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: Array | None) -> None:
        state.details["engine"] = "descents side by side"
        rows, count = A.rows, self.n_starts or FEWEST_STARTS
        X = rows.from_numpy(_random_signs(rng, (A.n, count - (x0 is not None))))
        X = X if x0 is None else rows.xp.column_stack([X, x0])
        passes = self.max_iter or FEWEST_SWEEPS_PER_START
        X = Descent(A).descend_columns(X, passes, lambda: state.check_time("local search"))
        T = rows.transposed(X)
        values = A.weights @ (T * T)
        best = int(np.argmin(values))
        state.propose(X[:, best], float(values[best]))


def _starts(
    A: Operator, state: SolveState, rng: np.random.Generator, x0: FloatArray | None, has_vector: bool
) -> Iterator[FloatArray]:
    """x0 or random signs, then those of an eigenvector in which rows of one class agree, then random ones.

    Single flips do not move a class of rows that attract each other.
    """
    yield _random_signs(rng, A.n) if x0 is None else x0
    if has_vector:
        yield sign(dual_feasible_start(A, state, rng).x)
    while True:
        yield _random_signs(rng, A.n)


@dataclass(eq=False)
class _Pool:
    """The best points so far, and a search by walks of an engine that combines them.

    A walk improves each start. From then on two of the pool are drawn, and one is mirrored if that makes them agree on
    more variables. Their child has the signs they share; the others are random, and 2 % of all are flipped. A walk
    improves the child, which replaces the worst of the pool if it is better and new. After walks for twice the pool's
    size without a new member, fresh starts replace all but the best.
    """

    engine: TabuWalks | _Descents
    state: SolveState
    rng: np.random.Generator
    starts: Iterator[FloatArray]
    members: list[Walk] = field(default_factory=list)  # the best first

    def evolve(self, max_iter: int | None) -> None:
        """Walks until ``max_iter`` moves are made. None: the engine's budget, or until the time limit.

        Within the engine's budget it also ends after 20 walks for each place in the pool without a better value.
        """
        size = fresh = self.engine.n_starts
        has_budget = max_iter is None and np.isinf(self.state.seconds_left)
        most_moves = self.engine.budget if has_budget else max_iter
        moves = idle = stale = 0
        best = np.inf
        while (most_moves is None or moves < most_moves) and not (has_budget and idle >= IDLE_WALKS * size):
            x = next(self.starts) if fresh > 0 else self._child()
            fresh -= 1
            walk = self._improved(x, moves, most_moves)
            moves += walk.moves
            # The first walk compares with inf; a later one must gain more than rounding.
            idle = 0 if best == np.inf or walk.value < best - 1e-12 * abs(best) else idle + 1
            best = min(best, walk.value)
            stale = 0 if self._entered(walk, size) else stale + 1
            if stale >= 2 * size:
                self.members, fresh, stale = self.members[:1], size - 1, 0
        if self.engine.A.is_dense:  # the last walk may have been cut short on its way down
            between = partial(self.state.check_time, "local search", 1.0)
            self.state.propose(Descent(self.engine.A).descend(self.members[0].x, between=between))

    def _improved(self, x: FloatArray, moves: int, most_moves: int | None) -> Walk:
        def propose(walk: Walk) -> None:
            if walk.value < self.state.value:
                self.state.propose(walk.x, walk.value)
            fraction = None if most_moves is None else min(1.0, (moves + walk.moves) / most_moves)
            self.state.check_time("local search", fraction)

        left = sys.maxsize if most_moves is None else most_moves - moves
        return self.engine.improve(x, self.rng, left, propose)

    def _entered(self, walk: Walk, size: int) -> bool:
        """Whether the walk's result is new and among the best ``size``."""
        if any(abs(walk.x @ member.x) == len(walk.x) for member in self.members):
            return False
        self.members.append(walk)
        self.members.sort(key=lambda member: member.value)
        if len(self.members) <= size:
            return True
        return self.members.pop() is not walk

    def _child(self) -> FloatArray:
        rng, n, count = self.rng, self.engine.A.n, len(self.members)
        a, b = (self.members[k].x for k in rng.choice(count, size=2, replace=count < 2))
        if a @ b < 0.0:
            b = -b
        x = np.where(a == b, a, _random_signs(rng, n))
        flips = rng.integers(0, n, size=max(1, int(PERTURBED_FRACTION * n)))
        x[flips] = -x[flips]
        return x


class _Descents:
    """Descents by single flips, whose moves are sweeps over all variables. At n = 10⁶ and rank 80: 2 starts of 12."""

    name = "sweeps in a pool"

    def __init__(self, A: Operator, n_starts: int | None = None) -> None:
        self.A, self._descent = A, Descent(A)
        nonzeros = 0 if A.sparse is None else A.sparse.nnz
        affordable = int(SWEEP_STEPS / (A.P.size + nonzeros + A.n))
        self.n_starts = n_starts or max(FEWEST_STARTS, min(affordable // 40, MOST_STARTS))
        self.budget = max(affordable, FEWEST_SWEEPS, FEWEST_SWEEPS_PER_START * self.n_starts)

    def improve(self, x: FloatArray, rng: np.random.Generator, max_moves: int, between: Callable[[Walk], Any]) -> Walk:
        x = x.copy()
        products = self._descent.products(x)
        sweeps, flips = 0, 1

        def so_far() -> Walk:
            return Walk(x, self._descent.value(x, products), sweeps)

        while flips and sweeps < min(max_moves, self.budget // self.n_starts):
            sweeps += 1
            flips = self._descent.one_pass(x, products, lambda: between(so_far()))
        return so_far()


def _random_signs(rng: np.random.Generator, shape: int | tuple[int, int]) -> FloatArray:
    return np.where(rng.integers(0, 2, size=shape) == 0, -1.0, 1.0)
