"""Rows → packed codes and places on the map. Both come from the margins, which are computed once, block by block.

The map shows the first two principal axes of the margins. Each bit is scaled to the same mean square, because each bit
counts the same in a Hamming distance. A place on an axis is the mean of the score and of its rank, both from 0 to 1:
scores alone draw the items of a class, whose codes are almost equal, over each other. Cost: O(n · n_bits²) after the
margins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from hashlearn.core.arrays import FloatArray, to_numpy
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.hashers.base import packed_bits_of
from hashlearn.linalg.principal_axes import principal_axes

BLOCK_ROWS = 8192
LARGEST = 2**16 - 1  # of a place


def row_count(X: Any) -> int:
    """The number of rows of an array, a sparse matrix, a table, a list or a source of rows."""
    for name in ("n_rows", "shape"):
        if hasattr(X, name):
            found = getattr(X, name)
            return int(found[0] if isinstance(found, tuple) else found)
    return len(X)


def codes_and_places(
    hasher: Any, X: Any, progress: ProgressCallback | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Packed codes, as ``hasher.encode`` gives them, and places (n, 2) from 0 to `LARGEST`."""
    n, done = row_count(X), 0
    if n == 0:
        raise ValueError("X has 0 samples; a page needs at least one to show")
    codes = np.empty((n, -(-hasher.n_bits // 8)), np.uint8)
    margins = np.empty((n, hasher.n_bits), np.float32)
    for block in _blocks(X, n):
        found = to_numpy(hasher.decision_function(block))
        rows = slice(done, done + len(found))
        codes[rows] = packed_bits_of(found)
        margins[rows] = np.clip(found, np.finfo(np.float32).min, np.finfo(np.float32).max)
        done += len(found)
        tell(progress, "encoding", done, n)
    return codes, places(margins)


def places(margins: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The place of each row on two principal axes; the middle where nothing differs.

    >>> places(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], np.float32)).tolist()
    [[65535, 32768], [0, 32768], [32768, 32768]]
    """
    largest = np.maximum(np.abs(margins).max(axis=0), np.finfo(np.float32).tiny)
    scaled = margins / largest  # first, so that no square overflows
    scaled /= np.maximum(np.sqrt(np.mean(scaled * scaled, axis=0, dtype=np.float64)), 1e-12).astype(np.float32)
    scores = principal_axes(scaled, 2, np.random.default_rng(0)).scores(scaled)
    placed = np.full((len(margins), 2), 0.5)
    for axis, column in enumerate(scores.T):
        placed[:, axis] = _stretched(column)
    whole: NDArray[np.uint16] = np.rint(placed * LARGEST).astype(np.uint16)
    return whole


def _stretched(column: FloatArray) -> FloatArray:
    """From 0 to 1: half by score, half by rank. Equal scores get the mean of their ranks."""
    low, high = column.min(), column.max()
    if not high - low > 1e-9 * max(1.0, abs(low), abs(high)):
        return np.full(len(column), 0.5)
    ranks = (rankdata(column) - 1.0) / (len(column) - 1.0)
    stretched: FloatArray = 0.5 * (column - low) / (high - low) + 0.5 * ranks
    return stretched


def _blocks(X: Any, n: int) -> Iterator[Any]:
    if hasattr(X, "batches"):
        yield from X.batches(BLOCK_ROWS)
        return
    rows = X.tocsr() if hasattr(X, "tocsr") else X
    yield from (rows[first : first + BLOCK_ROWS] for first in range(0, n, BLOCK_ROWS))
