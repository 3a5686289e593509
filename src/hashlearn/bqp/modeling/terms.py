"""Terms (i, j, weight) between variables, from labels of any kind or from square matrices. O(number of terms)."""

from __future__ import annotations

import math
import numbers
from array import array
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import scipy.sparse as sp

from hashlearn.core.arrays import FloatArray, IntArray
from hashlearn.core.checks import SYMMETRY_TOLERANCE, numeric_array, require_whole

MatrixTerms = tuple[int, IntArray, IntArray, FloatArray]  # n, i, j, w


class Terms:
    """Labels, numbered in the order in which they come, and the terms between them, collected one at a time."""

    def __init__(self, labels: Iterable[Hashable] = ()) -> None:
        self.number: dict[Hashable, int] = {}
        self._i, self._j, self._w = array("q"), array("q"), array("d")
        for label in labels:
            self._numbered(label)

    def _numbered(self, label: Any) -> int:
        try:
            return self.number.setdefault(label, len(self.number))
        except TypeError:
            raise TypeError(f"a label must be hashable, got {label!r} ({type(label).__name__})") from None

    def add(self, u: Any, v: Any, weight: Any, what: str) -> None:
        """Add a term; ``what`` names it in errors, before its labels."""
        self._i.append(self._numbered(u))
        self._j.append(self._numbered(v))
        if type(weight) is not float or not abs(weight) < np.inf:
            weight = real_number(weight, f"{what} {u!r}" if v is u else f"{what} ({u!r}, {v!r})")
        self._w.append(weight)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """All labels, in order."""
        return tuple(self.number)

    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """i, j and w of all terms."""
        return np.array(self._i, np.int64), np.array(self._j, np.int64), np.array(self._w, np.float64)


def real_number(value: Any, name: str) -> float:
    """A finite number as float64."""
    if not isinstance(value, numbers.Real | Decimal | np.bool):
        raise TypeError(f"{name} must be a real number, got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite in float64, got {value!r}")
    return number


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


def matrix_terms(matrix: Any, name: str) -> MatrixTerms:
    """All entries that are not 0 of a square matrix; those that a sparse matrix holds several times stay apart."""
    if sp.issparse(matrix):
        require_whole(matrix, name)
    else:
        matrix = finite_numbers(matrix, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be square, got shape {matrix.shape}")
    if not sp.issparse(matrix):
        i, j = np.nonzero(matrix)
        return len(matrix), i, j, matrix[i, j]
    coo = matrix.tocoo()
    i, j = (side.astype(np.int64) for side in coo.coords)
    return coo.shape[0], i, j, finite_numbers(coo.data, name, lambda k: f"{name}[{i[k]}, {j[k]}]")


def edges_of_matrix(matrix: Any, name: str) -> MatrixTerms:
    """The terms of a symmetric matrix, each pair once. Entries that differ by rounding count as above the diagonal."""
    n, i, j, w = matrix_terms(matrix, name)
    summed = sp.coo_array((w, (i, j)), shape=(n, n)).tocsr()
    difference = abs(summed - summed.T)
    if len(w) and difference.max() > SYMMETRY_TOLERANCE * np.abs(w).max():
        a, b = (int(q) for q in np.unravel_index(int(difference.argmax()), (n, n)))
        raise ValueError(
            f"{name} must be symmetric, but {name}[{a}, {b}] = {summed[a, b]:.6g} and {name}[{b}, {a}] = "
            f"{summed[b, a]:.6g}; pass {name} + {name}.T if it holds every edge once"
        )
    above = i <= j
    return n, i[above], j[above], w[above]


def parallel_note(i: IntArray, j: IntArray, n: int, label: Callable[[int], Any], name: str) -> tuple[str, ...]:
    """A note on edges that occur several times, in either order; none if there are none. ``label`` names a node."""
    proper = i != j
    keys = (np.minimum(i, j) * n + np.maximum(i, j))[proper]
    order = np.argsort(keys, kind="stable")
    repeats = order[1:][keys[order][1:] == keys[order][:-1]]
    if not len(repeats):
        return ()
    u, v = (label(k) for k in divmod(int(keys[repeats.min()]), n))
    return (f"{name} has {len(repeats)} parallel edge(s), such as ({u!r}, {v!r}); their weights are summed",)
