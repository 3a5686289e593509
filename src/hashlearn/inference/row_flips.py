"""Single flips of bits over rows [z, f], codes as int8 beside the target's factor: one read of both for each pass.

Threads look for rows whose flip helps, given t = Pᵀx as it stood before a panel of rows; then those rows alone are
looked at again, one after the other with t as it is by then, and flipped if it still helps. So xᵀAx never rises, and
the number of threads changes nothing. A pass costs n (8 r + L) bytes, for any number of columns of X.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_threads

Signs = NDArray[np.int8]

PANEL = 65_536  # rows between two updates of t
BLOCK = 8_192  # rows that a thread looks at in one go
MOST_PASSES = 12
SETTLED = 3e-4  # the share of rows that still flip in a pass at which the passes end
# Sums may be regrouped, so that they are vectorised; the compiled order is fixed.
FAST = {"reassoc", "contract", "nsz"}


class CodedRows(NamedTuple):
    """The rows of P = [Z, F]; a bit's own column is among them, with weight 0."""

    codes: Signs  # (n, n_bits)
    factor: FloatArray  # (n, rank)

    def products(self) -> tuple[FloatArray, FloatArray]:
        """ZᵀZ and ZᵀF."""

        def block(a: int, b: int) -> tuple[FloatArray, FloatArray]:
            Z = self.codes[a:b].astype(np.float64)
            return Z.T @ Z, Z.T @ self.factor[a:b]

        n_bits, rank = self.codes.shape[1], self.factor.shape[1]
        among, cross = np.zeros((n_bits, n_bits)), np.zeros((n_bits, rank))
        for part in _blocks(block, 0, len(self.codes)):
            among += part[0]
            cross += part[1]
        return among, cross

    def signs(self, q: FloatArray) -> tuple[Signs, FloatArray]:
        """x = sgn(P q) and Pᵀx, in one read."""
        n_bits = self.codes.shape[1]
        x = np.empty(len(self.codes), np.int8)
        t = np.zeros(len(q))
        for part in _blocks(
            lambda a, b: _signs(self.codes[a:b], self.factor[a:b], q[:n_bits], q[n_bits:], x[a:b]), 0, len(x)
        ):
            t += part
        return x, t

    def sampled(self, index: NDArray[np.intp]) -> FloatArray:
        """Some rows of P."""
        return np.hstack([self.codes[index].astype(np.float64), self.factor[index]])


def flip_rows(
    rows: CodedRows,
    weights: FloatArray,
    diagonal: FloatArray,
    X: Signs,
    T: FloatArray,
    between: Callable[[], Any] = lambda: None,
    most_passes: int = MOST_PASSES,
    settled: float = SETTLED,
) -> int:
    """Flip signs in the rows of X (columns × n), in place, until few flips help; no xᵀAx rises. Returns the passes.

    A = P diag(weights) Pᵀ has this diagonal; T holds Pᵀx for each x, and follows. ``between`` is called after each
    panel and may raise: X and T fit together then.
    """
    n = X.shape[1]
    for done in range(most_passes):
        flips = 0
        for first in range(0, n, PANEL):
            flips += _flip_panel(rows, weights, diagonal, X, T, first, min(first + PANEL, n))
            between()
        if flips <= settled * X.size:
            return done + 1
    return most_passes


def _flip_panel(
    rows: CodedRows, weights: FloatArray, diagonal: FloatArray, X: Signs, T: FloatArray, first: int, last: int
) -> int:
    codes, factor = rows
    n_bits = codes.shape[1]
    from_z, from_f = weights[:n_bits] * T[:, :n_bits], weights[n_bits:] * T[:, n_bits:]

    def helpful(a: int, b: int) -> NDArray[np.bool_]:
        found = np.empty((len(X), b - a), np.bool_)
        _look(codes[a:b], factor[a:b], from_z, from_f, diagonal[a:b], X[:, a:b], found)
        return found

    found = np.concatenate(list(_blocks(helpful, first, last)), axis=1)

    def flip(column: int) -> int:
        where = first + np.flatnonzero(found[column])
        return _flip(codes, factor, weights, diagonal, where, X[column], T[column])

    return sum(map_threads(flip, range(len(X))))


def _blocks(function: Callable[[int, int], Any], first: int, last: int) -> Any:
    """``function(a, b)`` for blocks of rows, in order, on all cores."""
    edges = [(a, min(a + BLOCK, last)) for a in range(first, last, BLOCK)]
    return map_threads(lambda edge: function(*edge), edges)


@njit(cache=True, nogil=True, fastmath=FAST)
def _dot(z, f, from_z, from_f):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(z.shape[0]):
        total += z[j] * from_z[j]
    for j in range(f.shape[0]):
        total += f[j] * from_f[j]
    return total


@njit(cache=True, nogil=True)
def _helps(x, pull, diagonal):  # type: ignore[no-untyped-def]
    """Whether a flip gains more than rounding."""
    return x * pull - diagonal > 1e-12 * (abs(pull) + abs(diagonal))


@njit(cache=True, nogil=True)
def _look(codes, factor, from_z, from_f, diagonal, X, found):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        for c in range(X.shape[0]):
            found[c, i] = _helps(X[c, i], _dot(codes[i], factor[i], from_z[c], from_f[c]), diagonal[i])


@njit(cache=True, nogil=True)
def _flip(codes, factor, weights, diagonal, where, x, t):  # type: ignore[no-untyped-def]
    """Rows ``where`` of one x, one after the other; t = Pᵀx follows."""
    n_bits, rank = codes.shape[1], factor.shape[1]
    from_z, from_f = weights[:n_bits] * t[:n_bits], weights[n_bits:] * t[n_bits:]
    flips = 0
    for i in where:
        if not _helps(x[i], _dot(codes[i], factor[i], from_z, from_f), diagonal[i]):
            continue
        step = -2.0 * x[i]
        x[i] = -x[i]
        flips += 1
        for j in range(n_bits):
            change = step * codes[i, j]
            t[j] += change
            from_z[j] += weights[j] * change
        for j in range(rank):
            change = step * factor[i, j]
            t[n_bits + j] += change
            from_f[j] += weights[n_bits + j] * change
    return flips


@njit(cache=True, nogil=True)
def _signs(codes, factor, q_z, q_f, x):  # type: ignore[no-untyped-def]
    n_bits, rank = codes.shape[1], factor.shape[1]
    t = np.zeros(n_bits + rank)
    for i in range(codes.shape[0]):
        sign = -1.0 if _dot(codes[i], factor[i], q_z, q_f) < 0.0 else 1.0
        x[i] = sign
        for j in range(n_bits):
            t[j] += sign * codes[i, j]
        for j in range(rank):
            t[n_bits + j] += sign * factor[i, j]
    return t
