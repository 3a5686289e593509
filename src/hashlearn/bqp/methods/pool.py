"""The pool of local search: the best points so far, which are recombined to new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from hashlearn.bqp.merging import Merged
from hashlearn.bqp.methods.tabu import Walk
from hashlearn.bqp.solution import Run
from hashlearn.core.arrays import FloatArray

PERTURBED_FRACTION = 0.02  # of the signs of a child

Between = Callable[[Walk], Any]


class Engine(Protocol):
    """What improves a point: tabu walks or sweeps."""

    name: str
    n: int
    n_starts: int
    budget: int  # moves, without a limit of the user

    def improve(self, x: FloatArray, rng: np.random.Generator, max_moves: int, between: Between) -> Walk:
        """A local optimum found from x."""


class Pool:
    """The best points so far. A walk of the engine improves each new one."""

    def __init__(self, engine: Engine, merged: Merged, run: Run, rng: np.random.Generator) -> None:
        self._engine, self._merged, self._run, self._rng = engine, merged, run, rng
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
            self._offer(walk)
            fraction = None if max_iter is None else min(1.0, (made + walk.moves) / max_iter)
            self._run.tick("local search", fraction)

        left = 2**62 if max_iter is None else max_iter - made
        walk = self._engine.improve(x, self._rng, left, between)
        self._offer(walk)
        return walk

    def _offer(self, walk: Walk) -> None:
        if walk.value < self._run.value:
            self._run.offer(self._merged.expand(walk.x), walk.value)

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
