"""Swaps for problems with a fixed sum of signs (`Cardinality`): one +1 and one −1 change together.

With gain_i = x_i Σ_{j≠i} a_ij x_j, swapping i and j of opposite signs lowers xᵀAx by 4 (gain_i + gain_j + 2 a_ij).

* `SwapWalks`, for a dense A, is tabu search: a move takes the free +1 of largest gain, the free −1 that fits it best,
  and then the free +1 that fits this −1 best. It costs O(n).
* `PairedSwaps`, for any A, descends: a pass computes all gains, sorts both sides by them, and
  swaps the pairs of equal rank while that helps. It costs one product A @ x and O(degree + rank) a pair. On a sparse A
  an anneal comes first (`Annealer`), in which a quadratic penalty replaces the constraint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from hashlearn.bqp.constraints import Cardinality
from hashlearn.bqp.methods.tabu import PIECE, ROUNDING, Walk, below
from hashlearn.bqp.operators import Dense, Operator, Sparse
from hashlearn.bqp.sweeps import split_parts
from hashlearn.core.arrays import FloatArray

Between = Callable[[Walk], Any]


def feasible(x: FloatArray, cardinality: Cardinality, rng: np.random.Generator) -> FloatArray:
    """The signs x with as few changed, drawn at random, as the constraint needs."""
    x = np.array(x, dtype=np.float64)
    movable = np.ones(len(x), bool)
    if cardinality.anchor is not None:
        x[cardinality.anchor], movable[cardinality.anchor] = 1.0, False
    surplus = round(x[movable].sum() - cardinality.total) // 2
    candidates = np.flatnonzero(movable & (x == np.sign(surplus)))
    changed = rng.choice(candidates, size=abs(surplus), replace=False)
    x[changed] = -x[changed]
    return x


class SwapWalks:
    """Tabu walks by swaps on a dense A."""

    def __init__(self, A: Dense, anchor: int | None) -> None:
        self.A = A
        self._anchor = -1 if anchor is None else anchor
        self.steps_per_move = 5.0 * A.n
        self._tolerance = ROUNDING * float(A.magnitudes().sum())

    def walk(
        self, x: FloatArray, rng: np.random.Generator, *, tenure: int, patience: int, max_moves: int, between: Between
    ) -> Walk:
        """From the signs x until ``patience`` swaps in a row brought no new best, or ``max_moves`` are made."""
        x = np.array(x, dtype=np.float64)
        product = self.A @ x
        gain = x * product - self.A.diagonal()
        movable = (x > 0.0).sum() - (self._anchor >= 0), (x < 0.0).sum()
        value = float(x @ product)
        if min(movable) == 0:
            return Walk(x, value, max_moves)  # there is nothing to swap
        best_x, until = x.copy(), np.zeros(len(x), np.int64)
        if self._anchor >= 0:
            until[self._anchor] = np.iinfo(np.int64).max
        # Each side needs a free variable at any time.
        longest = max(0, min(2 * tenure, min(movable) - 1))
        values, moved = np.array([value, value]), np.zeros(2, np.int64)  # now and best; swaps, and those at the best
        random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        piece = max(1, int(PIECE / self.steps_per_move))
        going = True
        while going and moved[0] < max_moves:
            count = min(piece, max_moves - int(moved[0]))
            going = _walk(
                self.A.array, x, gain, best_x, until, values, moved, random, longest, patience, self._tolerance, count
            )
            between(Walk(best_x, float(values[1]), int(moved[0])))
        return Walk(best_x, float(values[1]), int(moved[0]))


class PairedSwaps:
    """Descent by swaps: a move is a pass over all pairs."""

    def __init__(self, A: Operator, anchor: int | None) -> None:
        self.A = A
        self._anchor = anchor
        self._diagonal = A.diagonal()
        self._parts = split_parts(Sparse.unchecked(sp.csr_array(A.array)) if isinstance(A, Dense) else A)
        width = len(self._parts[0]) // A.n + self._parts[3].shape[1]
        self.steps_per_pass = 4.0 * A.n * (width + 4)
        self._pairs_per_piece = max(1, PIECE // (8 * width + 8))

    def descend(self, x: FloatArray, max_passes: int, between: Between) -> Walk:
        """Passes until one changes nothing."""
        x = np.array(x, dtype=np.float64)
        t = self._parts[3].T @ x
        product = self.A @ x
        made, changed = 0, 1
        while changed and made < max_passes:
            gain = x * product - self._diagonal
            if self._anchor is not None:
                gain[self._anchor] = -np.inf
            plus, minus = (np.flatnonzero(x == sign) for sign in (1.0, -1.0))
            plus, minus = (side[np.argsort(-gain[side], kind="stable")] for side in (plus, minus))
            count = min(len(plus), len(minus))
            hopeful = int(np.count_nonzero(gain[plus[:count]] + gain[minus[:count]] > 0.0))
            changed = 0
            for first in range(0, hopeful, self._pairs_per_piece):
                pairs = slice(first, min(first + self._pairs_per_piece, hopeful))
                changed += _swap_pairs(*self._parts, self._diagonal, plus[pairs], minus[pairs], x, t)
                between(Walk(x, np.inf, made))
            made += 1
            product = self.A @ x
            between(Walk(x, float(x @ product), made))
        return Walk(x, float(x @ product), made)


@njit(cache=True, nogil=True)
def _walk(  # type: ignore[no-untyped-def]
    A, x, gain, best_x, until, values, moved, random, longest, patience, tolerance, count
):
    """Up to ``count`` swaps; False once patience has run out. ``until[i]``: the first swap that may move i."""
    n = x.shape[0]
    for _ in range(count):
        now = moved[0]
        if now - moved[1] >= patience:
            return False
        start = below(random, n)  # breaks ties at random
        i = _fitting(A, x, gain, until, now, start, 1.0, -1)
        j = _fitting(A, x, gain, until, now, start, -1.0, i)
        i = _fitting(A, x, gain, until, now, start, 1.0, j)
        values[0] -= 4.0 * (gain[i] + gain[j] + 2.0 * A[i, j])
        for k in (i, j):
            opposite = -gain[k]
            twice = 2.0 * x[k]
            row = A[k]
            for q in range(n):
                gain[q] -= twice * row[q] * x[q]
            x[k] = -x[k]
            gain[k] = opposite
            shortest = (longest + 1) // 2
            until[k] = now + 1 + shortest + below(random, longest - shortest + 1)
        moved[0] += 1
        if values[0] < values[1] - tolerance:
            values[1] = values[0]
            moved[1] = moved[0]
            best_x[:] = x
    return True


@njit(cache=True, nogil=True)
def _fitting(A, x, gain, until, now, start, sign, partner):  # type: ignore[no-untyped-def]
    """The free variable of this sign whose swap with ``partner`` gains most; −1 as partner: of largest gain."""
    n = x.shape[0]
    chosen, largest = -1, -np.inf
    for first, last in ((start, n), (0, start)):
        for k in range(first, last):
            if x[k] == sign and until[k] <= now:
                g = gain[k] + (2.0 * A[partner, k] if partner >= 0 else 0.0)
                if g > largest:
                    chosen, largest = k, g
    return chosen


@njit(cache=True, nogil=True)
def _swap_pairs(data, indices, indptr, P, weights, diagonal, plus, minus, x, t):  # type: ignore[no-untyped-def]
    """Swap each pair if that helps by more than rounding; changes x and t = Pᵀx. Returns how many were swapped."""
    changed = 0
    rank = P.shape[1]
    for q in range(len(plus)):
        i, j = plus[q], minus[q]
        total, size, coupling = 0.0, 0.0, 0.0
        for k in (i, j):
            field = 0.0
            for r in range(rank):
                field += P[k, r] * weights[r] * t[r]
            for p in range(indptr[k], indptr[k + 1]):
                field += data[p] * x[indices[p]]
                if k == i and indices[p] == j:
                    coupling += data[p]
            total += x[k] * field - diagonal[k]
            size += abs(field) + abs(diagonal[k])
        for r in range(rank):
            coupling += P[i, r] * weights[r] * P[j, r]
        if total + 2.0 * coupling > 1e-12 * (size + abs(coupling)):
            changed += 1
            x[i], x[j] = -1.0, 1.0
            for r in range(rank):
                t[r] += 2.0 * (P[j, r] - P[i, r])
    return changed
