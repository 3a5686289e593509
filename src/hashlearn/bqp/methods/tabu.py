"""One-flip tabu search on a dense or sparse A. Every move updates the gains of all flips.

The state holds ``gain`` with gain_i = x_i Σ_{j≠i} a_ij x_j: flipping x_i lowers xᵀAx by 4·gain_i. A move flips the
variable of largest gain that is not tabu, even if the value rises, and forbids flipping it back for a random number of
moves. A tabu variable is flipped all the same if that leads below the best value of this walk (aspiration). Ties are
broken at random.

A move costs O(n) when A is dense. When A is sparse it changes O(degree) gains. Each change costs at most O(log n) in
one of two tournament trees, that of the free or that of the tabu variables, so no move reads all n variables. Moves are
made in pieces of bounded work. Every walk computes its products from scratch, so rounding adds up within one walk only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hashlearn.bqp.methods.tournament import below, enter, tournament, winner
from hashlearn.bqp.operators import Dense, Sparse
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks

# Elementary steps in one piece: a few hundredths of a second.
PIECE = 20_000_000
# Below this fraction of Σ|a_ij| the difference of two values may be rounding.
ROUNDING = 1e-13
# Places in the arrays `counts` and `values` of a walk.
MOVE, LAST_IMPROVEMENT, UNSAVED, LOGGED = range(4)
VALUE, BEST = range(2)


class Walk(NamedTuple):
    """The result of one walk: its best signs, their value as the sum of all moves, and the number of moves."""

    x: FloatArray
    value: float
    moves: int


class TabuWalks:
    """Tabu walks on one operator, from any signs."""

    def __init__(self, A: Dense | Sparse) -> None:
        self.A = A
        self._diagonal = A.diagonal()
        if isinstance(A, Dense):
            self._walk: Callable[..., bool] = _walk_dense
            self._parts: tuple[Any, ...] = (A.array,)
            self.steps_per_move = 2.0 * A.n
            # By blocks of rows: |A| as a whole would be a second n × n array.
            magnitude = sum(map_row_blocks(lambda a, b: float(np.abs(A.array[a:b]).sum()), A.n))
        else:
            self._walk = _walk_sparse
            self._parts = (A.matrix.data, A.matrix.indices, A.matrix.indptr)
            # Beyond the processor's caches every gain that changes is fetched from memory.
            self.steps_per_move = (50.0 + 10.0 * A.matrix.nnz / A.n) * (1.0 + A.n / 100_000)
            magnitude = float(np.abs(A.matrix.data).sum())
        self._tolerance = ROUNDING * magnitude

    def walk(
        self,
        x: FloatArray,
        rng: np.random.Generator,
        *,
        tenure: int,
        patience: int,
        max_moves: int,
        between: Callable[[Walk], Any] | None = None,
    ) -> Walk:
        """From the signs x until ``patience`` moves in a row brought no new best, or ``max_moves`` are made.

        A flipped variable is tabu for ``tenure`` to twice ``tenure`` moves. After each piece ``between``
        gets what the walk has found so far; it must copy the signs if it stores them.
        """
        n = self.A.n
        shortest = max(1, min(tenure, n // 4))
        x = np.array(x, dtype=np.float64)
        product = self.A @ x
        gain = x * product - self._diagonal
        value = float(x @ product)
        best_x = x.copy()
        counts, values = np.zeros(4, np.int64), np.array([value, value])
        random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        until, log = np.zeros(n, np.int64), np.empty(n, np.int64)
        state: tuple[Any, ...] = (x, gain, best_x, until, log, counts, values, random)
        if isinstance(self.A, Sparse):
            free = tournament(gain)
            calendar = np.full(2 * shortest + 2, -1, np.int64)
            state += (free, np.full_like(free, -np.inf), calendar, np.empty(n, np.int64))
        piece = max(1, int(PIECE / self.steps_per_move))
        going = True
        while going and counts[MOVE] < max_moves:
            moves = min(piece, max_moves - int(counts[MOVE]))
            going = self._walk(*self._parts, *state, shortest, patience, self._tolerance, moves)
            _save(x, best_x, log, counts)
            if between is not None:
                between(Walk(best_x, float(values[BEST]), int(counts[MOVE])))
        return Walk(best_x, float(values[BEST]), int(counts[MOVE]))


@njit(cache=True, nogil=True)
def _walk_dense(  # type: ignore[no-untyped-def]
    A, x, gain, best_x, until, log, counts, values, random, shortest, patience, tolerance, moves
):
    """Up to ``moves`` moves; False once patience has run out. ``until[i]``: the first move that may flip i."""
    n = x.shape[0]
    for _ in range(moves):
        now = counts[MOVE]
        if now - counts[LAST_IMPROVEMENT] >= patience:
            return False
        # The search begins at a random place, which breaks ties at random.
        start = below(random, n)
        chosen, tabu = -1, -1
        largest, largest_tabu = -np.inf, -np.inf
        for first, last in ((start, n), (0, start)):
            for k in range(first, last):
                if gain[k] > largest:
                    if until[k] <= now:
                        chosen, largest = k, gain[k]
                    elif gain[k] > largest_tabu:
                        tabu, largest_tabu = k, gain[k]
        if _aspires(largest, largest_tabu, values, tolerance):
            chosen = tabu
        _account(chosen, x, gain, best_x, log, counts, values, tolerance)
        until[chosen] = now + shortest + below(random, shortest + 1)
        opposite = -gain[chosen]
        twice = 2.0 * x[chosen]
        row = A[chosen]
        for k in range(n):
            gain[k] -= twice * row[k] * x[k]
        x[chosen] = -x[chosen]
        gain[chosen] = opposite
    return True


@njit(cache=True, nogil=True)
def _walk_sparse(  # type: ignore[no-untyped-def]
    data, indices, indptr,
    x, gain, best_x, until, log, counts, values, random, free, tabu, calendar, following,
    shortest, patience, tolerance, moves,
):  # fmt: skip
    """As `_walk_dense`. ``free`` and ``tabu`` are tournament trees with −inf for the variables they do not hold.

    ``calendar[move % its length]`` is the first variable to be freed at that move, ``following`` links the others;
    ``until[i]`` is 0 for a free variable.
    """
    for _ in range(moves):
        now = counts[MOVE]
        if now - counts[LAST_IMPROVEMENT] >= patience:
            return False
        _free_the_due(calendar, following, now, until, gain, free, tabu)
        chosen = winner(free, random)
        if _aspires(free[1], tabu[1], values, tolerance):
            chosen = winner(tabu, random)
        _account(chosen, x, gain, best_x, log, counts, values, tolerance)
        if until[chosen] > 0:
            _unlink(calendar, following, until[chosen], chosen)
        until[chosen] = now + 1 + shortest + below(random, shortest)
        slot = until[chosen] % calendar.shape[0]
        following[chosen] = calendar[slot]
        calendar[slot] = chosen
        twice = 2.0 * x[chosen]
        for q in range(indptr[chosen], indptr[chosen + 1]):
            k = indices[q]
            if k != chosen:
                gain[k] -= twice * data[q] * x[k]
                enter(tabu if until[k] > 0 else free, k, gain[k])
        x[chosen] = -x[chosen]
        gain[chosen] = -gain[chosen]
        enter(free, chosen, -np.inf)
        enter(tabu, chosen, gain[chosen])
    return True


@njit(cache=True, nogil=True)
def _aspires(largest, largest_tabu, values, tolerance):  # type: ignore[no-untyped-def]
    """Whether the best tabu flip is better than any free one and gives a new best value (or nothing is free)."""
    if not largest_tabu > largest:
        return False
    return largest == -np.inf or values[VALUE] - 4.0 * largest_tabu < values[BEST] - tolerance


@njit(cache=True, nogil=True)
def _account(i, x, gain, best_x, log, counts, values, tolerance):  # type: ignore[no-untyped-def]
    """Count the coming flip of i. The best point is saved only when the walk is about to leave it."""
    if gain[i] <= 0.0:
        _save(x, best_x, log, counts)
    if counts[LOGGED] < len(log):
        log[counts[LOGGED]] = i
    counts[LOGGED] += 1
    counts[MOVE] += 1
    values[VALUE] -= 4.0 * gain[i]
    if values[VALUE] < values[BEST] - tolerance:
        values[BEST] = values[VALUE]
        counts[LAST_IMPROVEMENT] = counts[MOVE]
        counts[UNSAVED] = 1


@njit(cache=True, nogil=True)
def _save(x, best_x, log, counts):  # type: ignore[no-untyped-def]
    """Bring ``best_x`` up to x if x is a new best, by the flips since the last time unless they are too many."""
    if counts[UNSAVED] == 0:
        return
    if counts[LOGGED] <= len(log):
        for q in range(counts[LOGGED]):
            best_x[log[q]] = x[log[q]]
    else:
        for i in range(len(x)):
            best_x[i] = x[i]
    counts[UNSAVED] = 0
    counts[LOGGED] = 0


@njit(cache=True, nogil=True)
def _free_the_due(calendar, following, now, until, gain, free, tabu):  # type: ignore[no-untyped-def]
    slot = now % calendar.shape[0]
    i = calendar[slot]
    while i >= 0:
        until[i] = 0
        enter(free, i, gain[i])
        enter(tabu, i, -np.inf)
        i = following[i]
    calendar[slot] = -1


@njit(cache=True, nogil=True)
def _unlink(calendar, following, due, i):  # type: ignore[no-untyped-def]
    slot = due % calendar.shape[0]
    if calendar[slot] == i:
        calendar[slot] = following[i]
        return
    k = calendar[slot]
    while following[k] != i:
        k = following[k]
    following[k] = following[i]
