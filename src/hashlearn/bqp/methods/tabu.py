"""One-flip tabu search on a dense A. Every move updates the gains of all flips, which costs O(n).

The state holds ``gain`` with gain_i = x_i Σ_{j≠i} a_ij x_j: flipping x_i lowers xᵀAx by 4·gain_i. A move flips the
variable of largest gain that is not tabu, even if the value rises, and forbids flipping it back for a random number of
moves. A tabu variable is flipped all the same if that leads below the best value of this walk (aspiration). Ties are
broken at random.

Moves are made in pieces of bounded work. Every walk computes its products from scratch, so rounding adds up within one
walk only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from hashlearn.bqp.operators import Dense
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks

# Elementary steps in one piece: a few hundredths of a second.
PIECE = 20_000_000
# Below this fraction of Σ|a_ij| the difference of two values may be rounding.
ROUNDING = 1e-13
# Places in the arrays `counts` and `values` of a walk.
MOVE, LAST_IMPROVEMENT = range(2)
VALUE, BEST = range(2)


class Walk(NamedTuple):
    """The result of one walk: its best signs, their value as the sum of all moves, and the number of moves."""

    x: FloatArray
    value: float
    moves: int


class TabuWalks:
    """Tabu walks on one dense operator, from any signs."""

    def __init__(self, A: Dense) -> None:
        self.A = A
        self._diagonal = A.diagonal()
        self.steps_per_move = 2.0 * A.n
        # Sum |A| by blocks of rows, because |A| itself would be a second n × n array.
        self._tolerance = ROUNDING * sum(map_row_blocks(lambda a, b: float(np.abs(A.array[a:b]).sum()), A.n))

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
        best_x, until = x.copy(), np.zeros(n, np.int64)
        counts, values = np.zeros(2, np.int64), np.array([value, value])
        random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        state = (self.A.array, x, gain, best_x, until, counts, values, random)
        piece = max(1, int(PIECE / self.steps_per_move))
        going = True
        while going and counts[MOVE] < max_moves:
            moves = min(piece, max_moves - int(counts[MOVE]))
            going = tabu_moves(*state, shortest, patience, self._tolerance, moves)
            if between is not None:
                between(Walk(best_x, float(values[BEST]), int(counts[MOVE])))
        return Walk(best_x, float(values[BEST]), int(counts[MOVE]))


@njit(cache=True, nogil=True)
def tabu_moves(  # type: ignore[no-untyped-def]
    A, x, gain, best_x, until, counts, values, random, shortest, patience, tolerance, moves
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
        # Aspiration: the best tabu flip is better than any free one and gives a new best value, or nothing is free.
        is_best = values[VALUE] - 4.0 * largest_tabu < values[BEST] - tolerance
        if largest_tabu > largest and (chosen < 0 or is_best):
            chosen = tabu
        counts[MOVE] += 1
        values[VALUE] -= 4.0 * gain[chosen]
        until[chosen] = now + shortest + below(random, shortest + 1)
        opposite = -gain[chosen]
        twice = 2.0 * x[chosen]
        row = A[chosen]
        for k in range(n):
            gain[k] -= twice * row[k] * x[k]
        x[chosen] = -x[chosen]
        gain[chosen] = opposite
        if values[VALUE] < values[BEST] - tolerance:
            values[BEST] = values[VALUE]
            counts[LAST_IMPROVEMENT] = counts[MOVE]
            best_x[:] = x
    return True


@njit(cache=True, nogil=True)
def draw(random):  # type: ignore[no-untyped-def]
    """The next 64 random bits (a 64-bit xorshift, then a multiplication)."""
    s = random[0]
    s ^= s >> np.uint64(12)
    s ^= s << np.uint64(25)
    s ^= s >> np.uint64(27)
    random[0] = s
    return s * np.uint64(2685821657736338717)


@njit(cache=True, nogil=True)
def below(random, n):  # type: ignore[no-untyped-def]
    """A random integer from 0 to n − 1."""
    return np.int64((draw(random) >> np.uint64(33)) % np.uint64(n))
