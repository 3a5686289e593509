"""Terms of square matrices, dense or scipy.sparse: each entry is a term, each pair one if symmetric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from hashlearn.core.arrays import FloatArray, IntArray
from hashlearn.core.checks import SYMMETRY_TOLERANCE, numeric_array, require_whole

Entries = tuple[int, IntArray, IntArray, FloatArray]  # n, i, j, w


def entries(matrix: Any, name: str) -> Entries:
    """All entries that are not 0 of a square matrix; those that a sparse matrix holds several times stay apart."""
    if sp.issparse(matrix):
        require_whole(matrix, name)
        coo = matrix.tocoo()
        if coo.ndim != 2 or coo.shape[0] != coo.shape[1]:
            raise ValueError(f"{name} must be square, got shape {coo.shape}")
        i, j = (coordinates.astype(np.int64) for coordinates in coo.coords)
        return coo.shape[0], i, j, finite_numbers(coo.data, name, lambda k: f"{name}[{i[k]}, {j[k]}]")
    array = finite_numbers(matrix, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be square, got shape {array.shape}")
    i, j = np.nonzero(array)
    return len(array), i, j, array[i, j]


def halved(n: int, i: IntArray, j: IntArray, w: FloatArray, name: str) -> Entries:
    """The terms of a symmetric matrix: each pair (i, j) once, and the diagonal. One that is not symmetric is refused.

    Entries that differ by rounding, as A.T @ A may have, count by half each.
    """
    above, below = np.flatnonzero(i < j), np.flatnonzero(i > j)
    above = above[np.lexsort((j[above], i[above]))]
    below = below[np.lexsort((i[below], j[below]))]
    mirrored = ((i, j), (j, i), (w, w))
    if len(above) == len(below) and all(np.array_equal(a[above], b[below]) for a, b in mirrored):
        kept = i <= j
        return n, i[kept], j[kept], w[kept]
    summed = sp.coo_array((w, (i, j)), shape=(n, n)).tocsr()
    difference = abs(summed - summed.T)
    if difference.max() > SYMMETRY_TOLERANCE * abs(summed).max():
        a, b = (int(q) for q in np.unravel_index(int(difference.argmax()), (n, n)))
        raise ValueError(
            f"{name} must be symmetric, but {name}[{a}, {b}] = {summed[a, b]:.6g} and {name}[{b}, {a}] = "
            f"{summed[b, a]:.6g}; pass {name} + {name}.T if it holds every edge once"
        )
    return n, i, j, np.where(i == j, w, w / 2.0)


def finite_numbers(values: Any, name: str, at: Callable[[int], str] | None = None) -> FloatArray:
    """An array of finite numbers as float64, in its shape; ``at`` names its k-th entry in errors."""
    with np.errstate(over="ignore"):
        floats = numeric_array(values, name).astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(floats))
    if len(bad):
        k = int(bad[0])
        where = at(k) if at else f"{name}[{', '.join(str(int(q)) for q in np.unravel_index(k, floats.shape))}]"
        raise ValueError(f"{where} must be finite in float64, got {floats.flat[k]}")
    return floats
