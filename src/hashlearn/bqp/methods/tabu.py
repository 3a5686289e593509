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

from hashlearn.bqp.flips import PIECE, Signs
from hashlearn.bqp.operators import Dense, Operator
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks

# The default budget in elementary steps, of which a move takes 2n: one to three seconds.
STEPS = 1e9
FEWEST_STARTS, MOST_STARTS = 2, 16
# Below this fraction of Σ|a_ij| the difference of two values may be rounding.
ROUNDING = 1e-13
# Places in the arrays `counts` and `values` of a walk.
MOVE, LAST_IMPROVEMENT = range(2)
VALUE, BEST = range(2)


class Walk(NamedTuple):
    """The result of one walk: its best signs, their value, and the number of moves."""

    x: Signs
    value: float
    moves: int


class TabuWalks:
    """Tabu walks on one operator, which is made dense, from any signs. A move is one flip.

    Parameters
    ----------
    tenure : a flipped variable is tabu for this number of moves, times a factor of 0.7 to 1.4 that is drawn for each
        walk, to twice that. None: n / 20, at least 4
    patience : a walk ends after this number of moves without a new best. None: 10 n; less, but at least n, if the
        default budget allows fewer than 25 such walks
    n_starts : size of the pool. None: 16; fewer, but at least 2, if the budget allows fewer than 6 walks for each
    """

    name = "tabu walks in a pool"

    def __init__(
        self, A: Operator, n_starts: int | None = None, tenure: int | None = None, patience: int | None = None
    ) -> None:
        self.A = A = A if A.is_dense else Dense(A.toarray())
        self._diagonal = A.diagonal()
        self.budget = max(int(STEPS / (2 * A.n)), 2 * A.n)
        self._tenure = tenure or max(4, A.n // 20)
        self._patience = patience or max(2000, A.n, min(10 * A.n, self.budget // 25))
        self.n_starts = n_starts or max(FEWEST_STARTS, min(self.budget // (6 * self._patience), MOST_STARTS))
        # Sum |A| by blocks of rows, because |A| itself would be a second n × n array.
        self._tolerance = ROUNDING * sum(map_row_blocks(lambda a, b: float(np.abs(A.array[a:b]).sum()), A.n))

    def improve(
        self,
        x: FloatArray,
        rng: np.random.Generator,
        max_moves: int,
        between: Callable[[Walk], Any] = lambda walk: None,
    ) -> Walk:
        """Walk from the signs x until patience runs out, or ``max_moves`` are made.

        After each piece ``between`` gets the walk so far; it must copy the signs if it stores them.
        """
        tenure = max(1, min(round(self._tenure * 2.0 ** rng.uniform(-0.5, 0.5)), self.A.n // 4))
        x = np.array(x, dtype=np.float64)
        product = self.A @ x
        gain = x * product - self._diagonal
        value = float(x @ product)
        best_x, free_at = x.copy(), np.zeros(len(x), np.int64)
        counts, values = np.zeros(2, np.int64), np.array([value, value])
        random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        state = (self.A.array, x, gain, best_x, free_at, counts, values, random, tenure, self._patience)
        piece = max(1, PIECE // (2 * len(x)))
        goes_on = True
        while goes_on and counts[MOVE] < max_moves:
            goes_on = tabu_moves(*state, self._tolerance, min(piece, max_moves - int(counts[MOVE])))
            walk = Walk(best_x, float(values[BEST]), int(counts[MOVE]))
            between(walk)
        return walk


@njit(cache=True, nogil=True)
def tabu_moves(  # type: ignore[no-untyped-def]
    A, x, gain, best_x, free_at, counts, values, random, tenure, patience, tolerance, moves
):
    """Up to ``moves`` moves; False once patience has run out. ``free_at[i]``: the first move that may flip i."""
    n = x.shape[0]
    for _ in range(moves):
        now = counts[MOVE]
        if now - counts[LAST_IMPROVEMENT] >= patience:
            return False
        # The search begins at a random place, which breaks ties at random.
        start = below(random, n)
        flip, tabu = -1, -1
        largest, largest_tabu = -np.inf, -np.inf
        for first, last in ((start, n), (0, start)):
            for k in range(first, last):
                if gain[k] > largest:
                    if free_at[k] <= now:
                        flip, largest = k, gain[k]
                    elif gain[k] > largest_tabu:
                        tabu, largest_tabu = k, gain[k]
        # Aspiration: the best tabu flip is better than any free one and gives a new best value, or nothing is free.
        is_best = values[VALUE] - 4.0 * largest_tabu < values[BEST] - tolerance
        if largest_tabu > largest and (flip < 0 or is_best):
            flip = tabu
        counts[MOVE] += 1
        values[VALUE] -= 4.0 * gain[flip]
        free_at[flip] = now + tenure + below(random, tenure + 1)
        opposite = -gain[flip]
        twice = 2.0 * x[flip]
        row = A[flip]
        for k in range(n):
            gain[k] -= twice * row[k] * x[k]
        x[flip] = -x[flip]
        gain[flip] = opposite
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
