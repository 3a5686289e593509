"""Codes as int8 beside the target's factor, in memory: the rows of P = [Z, F], and single flips over all of them.

Threads look for rows whose flip helps, given t = Pᵀx before a panel of rows. Then only those rows are visited again,
one after the other with t up to date. So xᵀAx never rises, and the number of threads changes nothing. A pass reads
n (8 · rank + n_bits) bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.bqp.rows.numpy_flips import dot, flip_in_order, helps
from hashlearn.bqp.solution import OutOfTime
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_threads
from hashlearn.inference.passes import SAMPLED_ROWS, Outcome, Proposal, Step
from hashlearn.inference.proofs import ProofSums, proof_sums

Signs = NDArray[np.int8]

PANEL = 65_536  # rows between two updates of t
BLOCK = 8_192  # rows that a thread looks at in one go
MAX_PASSES = 12
SETTLED = 3e-4  # the passes end when at most this share of the signs flipped in one


class ArrayRows:
    """`CodedRows` of a low-rank target whose factor is a NumPy array."""

    refreshes_products = True

    def __init__(self, target: bqp.Structured, start: Any) -> None:
        self.codes: Signs = np.array(start, dtype=np.int8, order="C")
        if not np.array_equal(np.abs(self.codes), np.ones_like(self.codes)):
            raise ValueError("start must hold only -1 and +1")
        self.factor = target.P
        self.n, self.n_bits = self.codes.shape
        self._diagonal = target.rows.diagonal(-float(self.n_bits) * target.weights) + (self.n_bits - 1.0)
        self._pending: Signs = np.empty((0, 0), np.int8)  # proposed signs, a row each

    def products(self) -> tuple[FloatArray, FloatArray]:
        """ZᵀZ and ZᵀF."""

        def block(a: int, b: int) -> tuple[FloatArray, FloatArray]:
            Z = self.codes[a:b].astype(np.float64)
            return Z.T @ Z, Z.T @ self.factor[a:b]

        among, cross = np.zeros((self.n_bits, self.n_bits)), np.zeros((self.n_bits, self.factor.shape[1]))
        for part in _blocks(block, 0, self.n):
            among += part[0]
            cross += part[1]
        return among, cross

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Some rows of P, drawn anew for every bit."""
        index = np.sort(rng.choice(self.n, min(self.n, SAMPLED_ROWS), replace=False))
        return np.hstack([self.codes[index].astype(np.float64), self.factor[index]])

    def propose(self, step: Step, tick: Callable[[], Any]) -> list[Proposal]:
        """One proposal for all rows."""
        columns, products = [self.codes[:, step.bit].copy()], [step.products.copy()]
        if step.candidate is not None:
            x, t = self._signs(step.candidate)
            columns, products = [*columns, x], [*products, t]
        X, T = np.stack(columns), np.stack(products)
        in_time = True
        try:
            flip_passes(self.codes, self.factor, step.weights, self._diagonal, X, T, tick)
        except OutOfTime:
            in_time = False
        self._pending = X
        changed = [int(np.count_nonzero(x != columns[0])) for x in X]
        return [Proposal(T[0] - step.products, T[1] if len(T) > 1 else None, changed, in_time)]

    def take(self, bit: int, outcomes: list[Outcome]) -> None:
        """Write the proposed signs that were chosen."""
        if outcomes[0] is not Outcome.KEEP:
            self.codes[:, bit] = self._pending[outcomes[0].value]

    def proof(self, bit: int, B: FloatArray, smallest: float) -> list[ProofSums]:
        """The sums of a proof, in one piece."""
        return [proof_sums(self.codes, self.factor, bit, B, smallest)]

    def _signs(self, q: FloatArray) -> tuple[Signs, FloatArray]:
        """x = sgn(P q) and Pᵀx, in one read."""
        x, t = np.empty(self.n, np.int8), np.zeros(len(q))
        for part in _blocks(lambda a, b: signs_and_products(self.codes[a:b], self.factor[a:b], q, x[a:b]), 0, self.n):
            t += part
        return x, t


def flip_passes(
    codes: Signs,
    factor: FloatArray,
    weights: FloatArray,
    diagonal: FloatArray,
    X: Signs,
    T: FloatArray,
    between: Callable[[], Any] = lambda: None,
    max_passes: int = MAX_PASSES,
    settled: float = SETTLED,
) -> int:
    """Flip signs in the rows of X (columns × n), in place, until few flips help; no xᵀAx rises. Returns the passes.

    A = P diag(weights) Pᵀ has this diagonal; the rows of T are Pᵀx and follow. ``between`` is called after each panel
    and may raise: X and T fit together then.
    """
    n = X.shape[1]
    for done in range(max_passes):
        flips = 0
        for first in range(0, n, PANEL):
            flips += _flip_panel(codes, factor, weights, diagonal, X, T, first, min(first + PANEL, n))
            between()
        if flips <= settled * X.size:
            return done + 1
    return max_passes


def _flip_panel(
    codes: Signs,
    factor: FloatArray,
    weights: FloatArray,
    diagonal: FloatArray,
    X: Signs,
    T: FloatArray,
    first: int,
    last: int,
) -> int:
    fields, n_bits = weights * T, codes.shape[1]
    of_codes, of_factor = fields[:, :n_bits].copy(), fields[:, n_bits:].copy()

    def helpful(a: int, b: int) -> NDArray[np.bool_]:
        found = np.empty((len(X), b - a), np.bool_)
        _look(codes[a:b], factor[a:b], of_codes, of_factor, diagonal[a:b], X[:, a:b], found)
        return found

    found = np.concatenate(list(_blocks(helpful, first, last)), axis=1)

    def flip(c: int) -> int:
        rows = first + np.flatnonzero(found[c])
        return int(flip_in_order(codes, factor, rows, weights, diagonal, X[c], X[c], T[c], fields[c], 1.0))

    return sum(map_threads(flip, range(len(X))))


def _blocks(function: Callable[[int, int], Any], first: int, last: int) -> Iterator[Any]:
    """``function(a, b)`` for blocks of rows, in order, on all cores."""
    edges = [(a, min(a + BLOCK, last)) for a in range(first, last, BLOCK)]
    return map_threads(lambda edge: function(*edge), edges)


@njit(cache=True, nogil=True)
def _look(codes, factor, of_codes, of_factor, diagonal, X, found):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        for c in range(X.shape[0]):
            found[c, i] = helps(X[c, i], dot(codes[i], factor[i], of_codes[c], of_factor[c]), diagonal[i])


@njit(cache=True, nogil=True)
def signs_and_products(codes, factor, q, x):  # type: ignore[no-untyped-def]
    """Write sgn(P q) into x; returns Pᵀx."""
    n_bits, rank = codes.shape[1], factor.shape[1]
    t = np.zeros(n_bits + rank)
    of_codes, of_factor = q[:n_bits], q[n_bits:]
    for i in range(codes.shape[0]):
        sign = -1.0 if dot(codes[i], factor[i], of_codes, of_factor) < 0.0 else 1.0
        x[i] = sign
        for j in range(n_bits):
            t[j] += sign * codes[i, j]
        for j in range(rank):
            t[n_bits + j] += sign * factor[i, j]
    return t
