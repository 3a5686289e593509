"""Means and second moments of all rows from those of blocks, merged in a fixed tree: the same sums wherever they run.

Every function takes the rows of one block; every ``merged`` takes two results, the left one of earlier rows. Rows are
brought to float64 a panel at a time, so a block of float32 never has a second copy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.linalg.unit_rows import scale_to_unit

PANEL_ROWS = 4096
FAN_IN = 8


class Moments(NamedTuple):
    """Count, mean and scatter of a set of rows."""

    n: int
    mean: FloatArray
    scatter: FloatArray  # Σ (x − mean)(x − mean)ᵀ

    @property
    def typical_norm(self) -> float:
        """The root mean square of the norms of the rows."""
        return float(np.trace(self.scatter) / self.n + self.mean @ self.mean) ** 0.5


def moments(rows: NDArray[Any]) -> Moments:
    """Moments of one block. Two passes over it, so that no digits cancel."""
    mean = sum(panel.sum(axis=0) for panel in panels(rows)) / len(rows)
    return Moments(len(rows), mean, gram(panel - mean for panel in panels(rows)))


def merged_moments(left: Moments, right: Moments) -> Moments:
    """Moments of two sets of rows together (Chan, Golub and LeVeque 1983)."""
    n, difference = left.n + right.n, right.mean - left.mean
    mean = left.mean + difference * (right.n / n)
    scatter = left.scatter + right.scatter + np.outer(difference, difference) * (left.n * (right.n / n))
    return Moments(n, mean, scatter)


def unit_gram(rows: NDArray[Any], mean: FloatArray, typical: float) -> FloatArray:
    """Σ uuᵀ over rows brought to unit length after the mean was subtracted."""
    return gram(scale_to_unit(panel - mean, typical) for panel in panels(rows))


def gram(parts: Iterator[FloatArray]) -> FloatArray:
    """Σ xxᵀ over the rows of all parts."""
    return reduce(operator.iadd, (part.T @ part for part in parts))


def pieces(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The rows, a panel at a time."""
    return (rows[first : first + PANEL_ROWS] for first in range(0, len(rows), PANEL_ROWS))


def panels(rows: NDArray[Any]) -> Iterator[FloatArray]:
    """The rows in float64, a panel at a time."""
    return (piece.astype(np.float64) for piece in pieces(rows))


def plus(left: Any, right: Any) -> Any:
    """Add two arrays, or two tuples of arrays element by element."""
    if isinstance(left, tuple):
        return tuple(a + b for a, b in zip(left, right, strict=True))
    return left + right


def tree(fold: Callable[[Sequence[Any]], Any], parts: Sequence[Any]) -> Any:
    """``fold`` of every `FAN_IN` neighbors, again and again until one is left: an order that only their number sets.

    >>> tree(lambda group: "(" + "".join(group) + ")", list("abcdefghi"))
    '((abcdefgh)(i))'
    """
    parts = list(parts)
    while len(parts) > 1:
        parts = [fold(parts[first : first + FAN_IN]) for first in range(0, len(parts), FAN_IN)]
    return parts[0]
