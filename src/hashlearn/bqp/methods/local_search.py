"""Local search for min xᵀAx, eq. (5): anneals on sparse problems, tabu walks or sweeps in a pool on the others.

A tabu move costs O(n), a sweep of an anneal O(nonzeros). The default budget is a fixed amount of work, one to three
seconds, or a few moves for each variable if that is more. Up to 2,048 variables a low-rank A is made dense. Beyond,
sweeps of O(n · rank) replace tabu moves, and no n × n array exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hashlearn.bqp.flips import Descent
from hashlearn.bqp.methods.annealed_search import AnnealedSearch
from hashlearn.bqp.methods.tabu import TabuWalks, Walk
from hashlearn.bqp.operators import Dense, Operator
from hashlearn.bqp.rows import Array
from hashlearn.bqp.solution import Status
from hashlearn.bqp.state import Solver, SolveState
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import whole_number
from hashlearn.core.thresholds import LARGEST_DENSIFIED

# The default budgets: elementary steps of all tabu walks, multiply-adds of all sweeps, and the least of each.
TABU_STEPS = 1e9
SWEEP_STEPS, FEWEST_SWEEPS, FEWEST_SWEEPS_PER_START = 2e9, 24, 12
MOST_STARTS, FEWEST_STARTS = 16, 2
# Walks without a better value after which the default search ends, for each place in the pool.
IDLE_WALKS = 20
PERTURBED_FRACTION = 0.02  # of the signs of a child

Between = Callable[[Walk], Any]


@dataclass(frozen=True)
class LocalSearch(Solver):
    """Searches by flips from several starts whose results are combined. A bound only for up to 20 variables.

    **Variables of few neighbors are eliminated** from a sparse A first (`hashlearn.bqp.elimination`), which is exact.

    **Sparse problems are annealed** (`AnnealedSearch`). Eight short anneals are recombined as a trial. If clusters of
    variables can be exchanged to advantage, as on tori, many anneals are recombined so. Otherwise, as on random graphs,
    the best of a few long anneals is heated mildly and annealed again, many times.

    **Dense problems are walked** by 1-flip tabu search with random tenure and aspiration (`TabuWalks`).
    A walk improves each start (x0 first, if given; random signs), and the results form a pool. From then on two of the
    pool are drawn, and one is mirrored if that makes them agree on more variables. Their child has the signs they
    share; the others are random, and 2 % of all are flipped. A walk improves the child, which replaces the worst of the
    pool if it is better and new. After walks for twice the pool's size without a new member, fresh starts replace
    all but the best. Without ``max_iter`` and time limit the search also ends when 20 walks for each start have brought
    nothing better.

    **Low-rank problems with more than 2,048 distinct rows are swept**: single flips replace the walks of the pool. At
    n = 10⁶ and rank 80 the defaults mean 2 starts of 12 sweeps. Where P is a tensor all starts descend together,
    batches of rows at a time, and are not recombined.

    Problems of up to 20 variables, equal rows being one, are enumerated, which proves the optimum; ``max_iter`` turns
    that off. ``details["engine"]`` of the solution says which search ran.

    Parameters
    ----------
    n_starts : size of the pool and number of starts, or of fresh anneals in a round; None: 16 starts (8 or 64 anneals),
        or fewer (2 at least) when n is so large that the default budget allows fewer than 3 walks for each
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
        for field in ("n_starts", "max_iter"):
            if getattr(self, field) is not None:
                whole_number(getattr(self, field), field, least=1)

    def solve(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: np.ndarray | None) -> Status:
        """Propose ever better points until the budget or the time limit ends it."""
        if not A.rows.on_host:
            return self._descend(A, state, rng, x0)
        if A.is_sparse:
            AnnealedSearch(A, state, rng, self.n_starts, self.max_iter).search(x0)
            if self.max_iter is not None:
                return Status.ITERATION_LIMIT
            return Status.CONVERGED if np.isinf(state.seconds_left) else Status.TIME_LIMIT
        if not A.is_dense and A.n <= LARGEST_DENSIFIED:
            A = Dense(A.toarray())
        engine = _Tabu(A, self.n_starts) if A.is_dense else _Sweeps(A, self.n_starts)
        state.details["engine"] = engine.name
        pool = _Pool(engine, state, rng)
        if self.max_iter is not None:
            pool.evolve(x0, self.max_iter)
        else:
            pool.evolve(x0, engine.budget if np.isinf(state.seconds_left) else None, idle_walks=IDLE_WALKS)
        if isinstance(engine, _Tabu):
            # The last walk may have been cut short on its way down.
            end = Descent(A).descend(pool.best.x, between=lambda: state.check_time("local search", 1.0))
            state.propose(end)
        return Status.CONVERGED if self.max_iter is None else Status.ITERATION_LIMIT

    def _descend(self, A: Operator, state: SolveState, rng: np.random.Generator, x0: Array | None) -> Status:
        """Rows that are not NumPy arrays: single flips from every start, all starts in the same passes."""
        state.details["engine"] = _Sweeps.name
        rows, count = A.rows, self.n_starts or FEWEST_STARTS
        random = np.where(rng.integers(0, 2, size=(A.n, count - (x0 is not None))) == 0, -1.0, 1.0)
        X = rows.from_numpy(random)
        X = X if x0 is None else rows.joined(X, x0)
        passes = self.max_iter or FEWEST_SWEEPS_PER_START
        X = Descent(A).descend_columns(X, passes, lambda: state.check_time("local search"))
        T = rows.transposed(X)
        values = A.weights @ (T * T)
        best = int(np.argmin(values))
        state.propose(X[:, best], float(values[best]))
        return Status.CONVERGED if self.max_iter is None else Status.ITERATION_LIMIT


class _Pool:
    """The best points so far. A walk of the engine improves each new one."""

    def __init__(self, engine: _Tabu | _Sweeps, state: SolveState, rng: np.random.Generator) -> None:
        self._engine, self._state, self._rng = engine, state, rng
        self._members: list[Walk] = []

    @property
    def best(self) -> Walk:
        """The member of smallest value."""
        return self._members[0]

    def evolve(self, start: FloatArray | None, max_iter: int | None, idle_walks: int | None = None) -> None:
        """Walks until ``max_iter`` moves are made; None: until the time limit.

        The search also ends after ``idle_walks`` walks for each place in the pool without a better value. It does not
        if ``idle_walks`` or ``max_iter`` is None.
        """
        size = self._engine.n_starts
        made = idle = stale = 0
        best = np.inf
        fresh = size
        while max_iter is None or made < max_iter:
            if fresh > 0:
                x = self._random_signs() if start is None else start
                start, fresh = None, fresh - 1
            else:
                x = self._offspring()
            walk = self._improved(x, made, max_iter)
            made += walk.moves
            # The first walk compares with inf; a later one must gain more than rounding.
            idle = 0 if best == np.inf or walk.value < best - 1e-12 * abs(best) else idle + 1
            best = min(best, walk.value)
            if max_iter is not None and idle_walks is not None and idle >= idle_walks * size:
                return
            stale = 0 if self._entered(walk, size) else stale + 1
            if stale >= 2 * size:
                self._members, fresh, stale = self._members[:1], size - 1, 0

    def _improved(self, x: FloatArray, made: int, max_iter: int | None) -> Walk:
        def between(walk: Walk) -> None:
            self._propose(walk)
            fraction = None if max_iter is None else min(1.0, (made + walk.moves) / max_iter)
            self._state.check_time("local search", fraction)

        left = 2**62 if max_iter is None else max_iter - made
        walk = self._engine.improve(x, self._rng, left, between)
        self._propose(walk)
        return walk

    def _propose(self, walk: Walk) -> None:
        if walk.value < self._state.value:
            self._state.propose(walk.x, walk.value)

    def _entered(self, walk: Walk, size: int) -> bool:
        """Whether the walk's result is new and among the best ``size``."""
        if any(abs(walk.x @ member.x) == self._engine.n for member in self._members):
            return False
        self._members.append(walk)
        self._members.sort(key=lambda member: member.value)
        if len(self._members) <= size:
            return True
        return self._members.pop() is not walk

    def _offspring(self) -> FloatArray:
        """Two members' common signs, the others drawn at random, a few of all flipped."""
        rng, n, count = self._rng, self._engine.n, len(self._members)
        a, b = (self._members[k].x for k in rng.choice(count, size=2, replace=count < 2))
        if a @ b < 0.0:
            b = -b
        x = np.where(a == b, a, self._random_signs())
        flipped = rng.integers(0, n, size=max(1, int(PERTURBED_FRACTION * n)))
        x[flipped] = -x[flipped]
        return x

    def _random_signs(self) -> FloatArray:
        return np.where(self._rng.integers(0, 2, size=self._engine.n) == 0, -1.0, 1.0)


class _Sweeps:
    """Descent by sweeps: a move is one sweep over all variables."""

    name = "sweeps in a pool"

    def __init__(self, A: Operator, n_starts: int | None = None) -> None:
        self.n = A.n
        self._sweeps = Descent(A)
        self._sparse, self._weights = A.sparse, A.weights
        nonzeros = 0 if A.sparse is None else A.sparse.nnz
        affordable = int(SWEEP_STEPS / (A.P.size + nonzeros + A.n))
        self.n_starts = n_starts or _between(FEWEST_STARTS, affordable // 40, MOST_STARTS)
        self.budget = max(affordable, FEWEST_SWEEPS, FEWEST_SWEEPS_PER_START * self.n_starts)
        self._longest = self.budget // self.n_starts

    def improve(self, x: FloatArray, rng: np.random.Generator, max_moves: int, between: Between) -> Walk:
        x = x.copy()
        t = self._sweeps.products(x)
        made = 0

        def so_far() -> Walk:
            value = float(self._weights @ (t * t)) + (0.0 if self._sparse is None else float(x @ (self._sparse @ x)))
            return Walk(x, value, made)

        while made < min(max_moves, self._longest):
            made += 1
            if self._sweeps.one_pass(x, t, between=lambda: between(so_far())) == 0:
                break
        return so_far()


class _Tabu:
    """Tabu walks: a move is one flip.

    A flipped variable is tabu for n / 20 moves or more, with some randomness. A walk ends after 10 n moves without a
    new best; only n when n is so large that the default budget allows fewer than 25 such walks.
    """

    name = "tabu walks in a pool"

    def __init__(self, A: Dense, n_starts: int | None) -> None:
        self.n = n = A.n
        self._walks = TabuWalks(A)
        self.budget = max(int(TABU_STEPS / self._walks.steps_per_move), 2 * n)
        self._tenure = max(4, n // 20)
        self._patience = max(2000, n, min(10 * n, self.budget // 25))
        self.n_starts = n_starts or _between(FEWEST_STARTS, self.budget // (6 * self._patience), MOST_STARTS)

    def improve(self, x: FloatArray, rng: np.random.Generator, max_moves: int, between: Between) -> Walk:
        tenure = round(self._tenure * 2.0 ** rng.uniform(-0.5, 0.5))
        return self._walks.walk(x, rng, tenure=tenure, patience=self._patience, max_moves=max_moves, between=between)


def _between(least: int, wanted: int, most: int) -> int:
    return max(least, min(wanted, most))
