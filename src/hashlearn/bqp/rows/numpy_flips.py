"""1-flip descent over NumPy rows: signs flip one after the other, each only if that lowers xᵀAx.

A = P diag(weights) Pᵀ, and row i of P is [codes[i], factor[i]]: small whole numbers beside numbers of any float type.
Solvers of one problem have no codes: their P is the factor alone. `flip_in_order` is the one kernel that flips.
`flip_descent` finds the rows worth a visit by panels of matrix products that all columns share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from hashlearn.core.arrays import FloatArray

PANEL_ROWS = 64
ROWS_PER_PIECE = 1 << 16  # rows between two calls of ``between``, which hears time limits and Ctrl-C
# Sums may be regrouped, so that they are vectorized. The compiled order is fixed, and the same in every process.
FAST = {"reassoc", "contract", "nsz"}


def flip_descent(
    P: FloatArray, weights: FloatArray, X: FloatArray, between: Callable[[], Any], passes: int
) -> FloatArray:
    """`Rows.flip_descent`; X is overwritten if it is C-contiguous."""
    X = np.ascontiguousarray(X)
    T = np.ascontiguousarray(X.T @ P)
    fields = T * weights
    diagonal = np.einsum("ij,ij,j->i", P, P, weights)
    for _ in range(passes):
        flips = 0
        for first in range(0, len(P), ROWS_PER_PIECE):
            last = min(first + ROWS_PER_PIECE, len(P))
            flips += _flip_panels(P, weights, diagonal, first, last, X, T, fields)
            between()
        if flips == 0:
            break
    return X


@njit(cache=True, nogil=True)
def _flip_panels(P, weights, diagonal, first, last, X, T, fields):  # type: ignore[no-untyped-def]
    """Rows first…last of every column of X, in place; the rows T = XᵀP and ``fields`` = T W follow."""
    columns = X.shape[1]
    no_codes = np.empty((P.shape[0], 0), np.int8)
    gradients = np.empty((PANEL_ROWS, columns))
    flips = 0
    for start in range(first, last, PANEL_ROWS):
        end = min(start + PANEL_ROWS, last)
        np.dot(P[start:end], fields.T, gradients[: end - start])
        for c in range(columns):
            x = X[:, c]
            for i in range(start, end):
                if helps(x[i], gradients[i - start, c], diagonal[i]):
                    rest = np.arange(i, end)  # the flip changes the gradients of the rows after it
                    flips += flip_in_order(no_codes, P, rest, weights, diagonal, x, x, T[c], fields[c], 1.0)
                    break
    return flips


@njit(cache=True, nogil=True)
def flip_in_order(codes, factor, rows, weights, diagonal, x, start, t, fields, repeats):  # type: ignore[no-untyped-def]
    """Visit ``rows`` one after the other and flip x where that helps; returns the number of flips.

    ``t`` = Pᵀx and ``fields`` = W Pᵀx follow. ``fields`` counts every change from ``start`` ``repeats`` times: a block
    of rows assumes that the other blocks make the same flips. With one block ``start`` may be x itself.
    """
    n_codes, rank = codes.shape[1], factor.shape[1]
    of_codes, of_factor = fields[:n_codes], fields[n_codes:]
    flips = 0
    for i in rows:
        gradient = dot(codes[i], factor[i], of_codes, of_factor)
        own = diagonal[i] if x[i] == start[i] else (2.0 * repeats - 1.0) * diagonal[i]  # its part in the gradient
        if not helps(x[i], gradient, own):
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


@njit(cache=True, nogil=True, fastmath=FAST)
def dot(z, f, of_z, of_f):  # type: ignore[no-untyped-def]
    """[z, f] · [of_z, of_f]."""
    total = 0.0
    for j in range(z.shape[0]):
        total += z[j] * of_z[j]
    for j in range(f.shape[0]):
        total += f[j] * of_f[j]
    return total


@njit(cache=True, nogil=True)
def helps(x, gradient, diagonal):  # type: ignore[no-untyped-def]
    """Whether flipping x lowers the value by more than rounding."""
    return x * gradient - diagonal > 1e-12 * (abs(gradient) + abs(diagonal))
