"""Passes of exact coordinate steps x_i ← −sgn(Σ_{j≠i} a_ij x_j), eq. (21), for every kind of operator.

From a continuous x the first pass is the paper's sequential binarization. From signs it is a pass of 1-flip descent
that takes every improvement it meets. A pass costs as much as one product A @ x. For low rank it updates t = Pᵀx and
never forms A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.operators import Operator
from hashlearn.core.arrays import FloatArray

IntArray = NDArray[np.int64]

# Multiply-adds between two calls of ``between``: a few hundredths of a second.
PIECE = 20_000_000


class CoordinateSweeps:
    """Passes over one operator, from signs or a continuous x of the caller."""

    def __init__(self, A: Operator) -> None:
        self.A = A
        self._diagonal = A.diagonal()
        if A.is_dense:
            self._step: Callable[..., int] = _sweep_dense
            self._parts: tuple[Any, ...] = (A.array,)
            width = A.n
        else:
            self._step = _sweep_split
            self._parts = (*A.csr(), A.P, A.weights)
            width = len(self._parts[0]) // A.n + self._parts[3].shape[1]
        self._rows_per_piece = max(1, PIECE // (2 * width + 1))

    def binarize(self, x: FloatArray) -> FloatArray:
        """Signs from a continuous x, one element after the other (eq. 21)."""
        x = np.array(x, dtype=np.float64)
        self.sweep(x, self.products(x))
        return x

    def descend(self, x: FloatArray, max_passes: int = 1000, between: Callable[[], Any] | None = None) -> FloatArray:
        """Single flips until none helps: a 1-flip local optimum, never worse than the signs x.

        ``between`` is called after every piece of bounded work, several times a pass when n is large.
        """
        x = np.array(x, dtype=np.float64)
        products = self.products(x)
        for _ in range(max_passes):
            if self.sweep(x, products, between=between) == 0:
                break
        return x

    def products(self, x: FloatArray) -> FloatArray:
        """What `sweep` updates together with x: A @ x if A is dense, else Pᵀx."""
        if self.A.is_dense:
            return self.A.array @ x
        P = self._parts[3]
        return P.T @ x

    def sweep(self, x: FloatArray, products: FloatArray, between: Callable[[], Any] | None = None) -> int:
        """One pass, which changes x and ``products`` in place; returns how many signs changed."""
        changed = 0
        for first in range(0, self.A.n, self._rows_per_piece):
            last = min(first + self._rows_per_piece, self.A.n)
            changed += self._step(*self._parts, self._diagonal, first, last, x, products)
            if between is not None:
                between()
        return changed


@njit(cache=True, nogil=True)
def _sweep_dense(A, diagonal, first, last, x, field):  # type: ignore[no-untyped-def]
    """Changes x, and ``field`` = A @ x with it. Ties keep the sign that x_i has (+1 for 0)."""
    changed = 0
    for i in range(first, last):
        old = x[i]
        others = field[i] - diagonal[i] * old
        new = -1.0 if others > 0.0 else (1.0 if others < 0.0 else (1.0 if old >= 0.0 else -1.0))
        if _is_step(new, old, others, field[i]):
            changed += 1
            x[i] = new
            field += (new - old) * A[i]
    return changed


@njit(cache=True, nogil=True)
def _sweep_split(data, indices, indptr, P, weights, diagonal, first, last, x, t):  # type: ignore[no-untyped-def]
    """Changes x, and ``t`` = Pᵀx with it. The products with the sparse part are computed row by row."""
    changed = 0
    rank = P.shape[1]
    for i in range(first, last):
        old = x[i]
        field = 0.0
        for j in range(rank):
            field += P[i, j] * weights[j] * t[j]
        for q in range(indptr[i], indptr[i + 1]):
            field += data[q] * x[indices[q]]
        others = field - diagonal[i] * old
        new = -1.0 if others > 0.0 else (1.0 if others < 0.0 else (1.0 if old >= 0.0 else -1.0))
        if _is_step(new, old, others, field):
            changed += 1
            x[i] = new
            for j in range(rank):
                t[j] += (new - old) * P[i, j]
    return changed


@njit(cache=True, nogil=True)
def _is_step(new, old, others, field):  # type: ignore[no-untyped-def]
    """A flip between signs must gain more than rounding, else two flips could undo each other forever."""
    if new == old:
        return False
    return abs(old) != 1.0 or abs(others) > 1e-12 * (abs(field) + abs(others))
