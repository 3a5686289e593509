"""Single flips that lower xᵀAx, eq. (5): the one rule, and descents that follow it to a 1-flip local optimum.

Flipping x_i changes the value by 4 (a_ii − x_i (Ax)_i). **The rule**: flip if x_i (Ax)_i > a_ii + 1e-12 Σ_j |a_ij|, so
that a flip gains more than rounding and two flips cannot undo each other forever. `thresholds` is the right side.

A visit of a continuous x_i first takes its sign, so a pass from a continuous x is the sequential binarization of the
paper: x_i ← −sgn(Σ_{j≠i} a_ij x_j), eq. (21). A pass costs as much as one product A @ x. A low-rank part updates
t = Pᵀx and never forms A. Rows of a low-rank P may begin with codes: int8 signs beside numbers of any float type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.operators import Operator
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, map_threads

ROUNDING = 1e-12
MAX_PASSES = 1000
# Sums may be regrouped, so that they are vectorized. The compiled order is fixed, and the same in every process.
FAST = {"reassoc", "contract", "nsz"}
PIECE = 20_000_000  # multiply-adds between two calls of ``between``: a few hundredths of a second
PANEL_ROWS = 64  # of the products that all columns share
PANEL = 65_536  # rows between two updates of t in `flip_passes`
BLOCK = 8_192  # rows of a panel that one thread looks at

Between = Callable[[], Any]
Signs = NDArray[Any]  # ±1 as int8 or floats


class Descent:
    """Descents on one operator, from signs or from a continuous x."""

    def __init__(self, A: Operator) -> None:
        self.A = A
        self._kernel: Any = _flip_dense if A.is_dense else _flip_structured
        width = A.n if A.is_dense else A.rank + (0 if A.sparse is None else A.sparse.nnz // A.n)
        self._rows_per_piece = max(1, PIECE // (2 * width + 1))

    @cached_property
    def _parts(self) -> tuple[Any, ...]:
        """What the kernel reads. Rows on a device have a descent of their own, and never need it."""
        A = self.A
        return *((A.array,) if A.is_dense else (*A.csr(), A.P, A.weights)), thresholds(A)

    def descend(self, x: FloatArray, max_passes: int = MAX_PASSES, between: Between | None = None) -> FloatArray:
        """Pass until no flip helps: a 1-flip local optimum, never worse than the signs x."""
        x = np.array(x, dtype=np.float64)
        products = self.products(x)
        for _ in range(max_passes):
            if self.one_pass(x, products, between) == 0:
                break
        return x

    def binarize(self, x: FloatArray) -> FloatArray:
        """Signs from a continuous x, one element after the other, eq. (21)."""
        return self.descend(x, max_passes=1)

    def descend_columns(self, X: Any, max_passes: int = MAX_PASSES, between: Between = lambda: None) -> Any:
        """`descend` from every column of X, n × k, which rows on a device may overwrite."""
        rows: Any = self.A.rows
        if not rows.on_host:
            return rows.flip_descent(self.A.weights, X, between, max_passes)
        return np.column_stack(list(map_threads(lambda x: self.descend(x, max_passes, between), X.T)))

    def products(self, x: FloatArray) -> FloatArray:
        """What `one_pass` updates together with x: A @ x if A is dense, else t = Pᵀx."""
        return self.A.array @ x if self.A.is_dense else self.A.P.T @ x

    def value(self, x: FloatArray, products: FloatArray) -> float:
        """xᵀAx from `products`."""
        if self.A.is_dense:
            return float(x @ products)
        value = float(self.A.weights @ (products * products))
        return value if self.A.sparse is None else value + float(x @ (self.A.sparse @ x))

    def one_pass(self, x: FloatArray, products: FloatArray, between: Between | None = None) -> int:
        """One pass, which changes x and ``products`` in place; returns the number of flips.

        ``between`` is called after every piece of bounded work, several times a pass when n is large.
        """
        flips = 0
        for first in range(0, self.A.n, self._rows_per_piece):
            last = min(first + self._rows_per_piece, self.A.n)
            flips += self._kernel(*self._parts, first, last, x, products)
            if between is not None:
                between()
        return flips


def thresholds(A: Operator) -> FloatArray:
    """a_ii + 1e-12 Σ_j |a_ij|, what x_i (Ax)_i must exceed for a flip.

    A low-rank part counts by |a_ij| ≤ s_i s_j with s_i² = Σ_k |w_k| p_ik².
    """
    if A.rank == 0:
        return A.diagonal() + ROUNDING * A.magnitudes()
    limits = low_rank_thresholds(A.P, A.weights)
    if A.sparse is not None:
        limits += A.sparse.diagonal() + ROUNDING * abs(A.sparse).sum(axis=1)
    return limits


def low_rank_thresholds(P: NDArray[Any], weights: FloatArray, diagonal: float = 0.0) -> FloatArray:
    """`thresholds` of P diag(weights) Pᵀ, whose rows also hold codes that add ``diagonal`` ≥ 0 to every a_ii."""
    both = np.column_stack([weights, np.abs(weights)])
    sums = np.concatenate(map_row_blocks(lambda a, b: np.square(P[a:b]) @ both, len(P), P.shape[1])) + diagonal
    roots = np.sqrt(sums[:, 1])
    return sums[:, 0] + ROUNDING * roots.sum() * roots


def flip_passes(
    codes: NDArray[np.int8],
    factor: FloatArray,
    weights: FloatArray,
    limits: FloatArray,
    X: Signs,
    T: FloatArray,
    between: Between = lambda: None,
    max_passes: int = MAX_PASSES,
    settled: float = 0.0,
) -> int:
    """Descend in the rows of X (columns × n), in place, until the share ``settled`` of signs or fewer flip in a pass.

    A = P diag(weights) Pᵀ with P = [codes, factor] and `thresholds` ``limits``. The rows of T are Pᵀx and follow.
    Threads look for rows whose flip helps, given t before a panel of rows. Then only those rows are visited again, one
    after the other with t up to date. So no value rises, and the number of threads changes nothing. ``between`` is
    called after each panel and may raise: X and T fit together then. Returns the number of passes.
    """

    def panel(first: int, last: int, fields: FloatArray) -> int:
        def helpful(a: int, b: int) -> NDArray[np.bool_]:
            return _helpful_rows(codes[a:b], factor[a:b], fields, limits[a:b], X[:, a:b])

        def flip(c: int) -> int:
            rows = first + np.flatnonzero(helps[c])
            return int(flip_rows(rows, codes, factor, weights, limits, X[c], X[c], T[c], fields[c], 1.0))

        helps = np.concatenate(list(row_blocks(helpful, first, last)), axis=1)
        return sum(map_threads(flip, range(len(X))))

    for passes in range(max_passes):
        flips = 0
        for first in range(0, X.shape[1], PANEL):
            flips += panel(first, min(first + PANEL, X.shape[1]), weights * T)
            between()
        if flips <= settled * X.size:
            return passes + 1
    return max_passes


def row_blocks(function: Callable[[int, int], Any], first: int, last: int) -> Iterator[Any]:
    """``function(a, b)`` for blocks of rows, in order, on all cores."""
    edges = [(a, min(a + BLOCK, last)) for a in range(first, last, BLOCK)]
    return map_threads(lambda edge: function(*edge), edges)


@njit(cache=True, nogil=True)
def _flip_dense(A, limits, first, last, x, products):  # type: ignore[no-untyped-def]
    """Visit rows first…last; ``products`` = A @ x follows. Returns the number of flips."""
    flips = 0
    for i in range(first, last):
        sign = 1.0 if x[i] >= 0.0 else -1.0
        if x[i] != sign:
            products += (sign - x[i]) * A[i]
            x[i] = sign
        if sign * products[i] > limits[i]:
            flips += 1
            products -= 2.0 * sign * A[i]
            x[i] = -sign
    return flips


@njit(cache=True, nogil=True)
def _flip_structured(data, indices, indptr, P, weights, limits, first, last, x, t):  # type: ignore[no-untyped-def]
    """Visit rows first…last of A = S + P diag(weights) Pᵀ; ``t`` = Pᵀx follows. Returns the number of flips.

    P W t is computed for a panel of rows at once. From the first flip in a panel on, each row computes its own.
    """
    rank = P.shape[1]
    products, field = np.zeros(PANEL_ROWS), weights * t
    flips = 0
    for start in range(first, last, PANEL_ROWS):
        end = min(start + PANEL_ROWS, last)
        if rank > 0:
            np.dot(P[start:end], field, products[: end - start])
        stale = False
        for i in range(start, end):
            sign = 1.0 if x[i] >= 0.0 else -1.0
            if x[i] != sign:
                _move(P, weights, i, sign - x[i], t, field)
                x[i], stale = sign, rank > 0
            product = dot(P[i], field) if stale else products[i - start]
            for q in range(indptr[i], indptr[i + 1]):
                product += data[q] * x[indices[q]]
            if sign * product > limits[i]:
                flips += 1
                _move(P, weights, i, -2.0 * sign, t, field)
                x[i], stale = -sign, rank > 0
    return flips


@njit(cache=True, nogil=True)
def _move(P, weights, i, step, t, field):  # type: ignore[no-untyped-def]
    """Add to t = Pᵀx, and to ``field`` = W t, what x_i + ``step`` adds."""
    for j in range(P.shape[1]):
        t[j] += step * P[i, j]
        field[j] += step * weights[j] * P[i, j]


@njit(cache=True, nogil=True)
def flip_rows(rows, codes, factor, weights, limits, x, start, t, fields, repeats):  # type: ignore[no-untyped-def]
    """Visit ``rows`` of [codes, factor] one after the other; returns the number of flips.

    ``t`` = Pᵀx and ``fields`` = W Pᵀx follow. ``fields`` counts every change from ``start`` ``repeats`` times: a block
    of rows assumes that the other blocks make the same flips. With one block ``start`` may be x itself.
    """
    n_codes, rank = codes.shape[1], factor.shape[1]
    of_codes, of_factor = fields[:n_codes], fields[n_codes:]
    flips = 0
    for i in rows:
        product = dot(codes[i], of_codes) + dot(factor[i], of_factor)
        limit = limits[i] if x[i] == start[i] else (2.0 * repeats - 1.0) * limits[i]  # its own part in the product
        if not x[i] * product > limit:
            continue
        flips += 1
        step = -2.0 * x[i]
        x[i] = -x[i]
        for j in range(n_codes):
            t[j] += step * codes[i, j]
            of_codes[j] += repeats * step * weights[j] * codes[i, j]
        for j in range(rank):
            t[n_codes + j] += step * factor[i, j]
            of_factor[j] += repeats * step * weights[n_codes + j] * factor[i, j]
    return flips


@njit(cache=True, nogil=True)
def _helpful_rows(codes, factor, fields, limits, X):  # type: ignore[no-untyped-def]
    """Where a flip would help, for every row of X, given ``fields`` = W Pᵀx."""
    n_codes = codes.shape[1]
    helps = np.empty(X.shape, np.bool_)
    for i in range(X.shape[1]):
        for c in range(X.shape[0]):
            product = dot(codes[i], fields[c, :n_codes]) + dot(factor[i], fields[c, n_codes:])
            helps[c, i] = X[c, i] * product > limits[i]
    return helps


@njit(cache=True, nogil=True, fastmath=FAST)
def dot(u, v):  # type: ignore[no-untyped-def]
    """u · v."""
    total = 0.0
    for j in range(u.shape[0]):
        total += u[j] * v[j]
    return total
