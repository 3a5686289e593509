"""The nearest other rows of many rows, approximately: each row looks at the rows of a few cells.

A cell holds the rows nearest to one of √n centers (k-means on a sample). A row looks at its own cell and at the cells
whose centers are nearest to that of its own. One product finds the neighbors of all rows of a cell, so the cost is
O(n^1.5 · n_features) instead of O(n² · n_features). Of 100,000 sentence embeddings with noise this finds 99 % of the 7
nearest.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.threads import map_row_blocks, map_threads, one_blas_thread

Rows = NDArray[np.float32]

PROBED_CELLS = 16
CENTER_STEPS = 8  # of k-means
ROWS_PER_CENTER = 64  # in the sample that the centers are found on


def nearest_in_cells(rows: Rows, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The k nearest of the rows in the nearest cells; a few true neighbors are missed.

    >>> rows = np.array([[0.0], [0.1], [5.0], [5.1]], dtype=np.float32)
    >>> nearest_in_cells(rows, 1, np.random.default_rng(0)).ravel()
    array([1, 0, 3, 2])
    """
    found = np.empty((len(rows), k), dtype=np.int64)
    with one_blas_thread():
        centers = _centers(rows, max(1, int(len(rows) ** 0.5)), rng)
        cell = _nearest_center(rows, centers)
        order = np.argsort(cell, kind="stable")
        edges = np.searchsorted(cell[order], np.arange(len(centers) + 1))
        members = [order[a:b] for a, b in pairwise(edges)]
        near = np.argsort(_half_distances(centers, centers), axis=1, kind="stable")

        def search(number: int) -> None:
            inside = members[number]
            if not len(inside):
                return
            count = PROBED_CELLS
            candidates = np.concatenate([members[other] for other in near[number, :count]])
            while len(candidates) <= k and count < len(centers):
                count *= 2
                candidates = np.concatenate([members[other] for other in near[number, :count]])
            distances = _half_distances(rows[inside], rows[candidates])
            distances[candidates == inside[:, None]] = np.inf
            found[inside] = candidates[np.argpartition(distances, k - 1, axis=1)[:, :k]]

        for _ in map_threads(search, range(len(centers))):
            pass
    return found


def _centers(rows: Rows, count: int, rng: np.random.Generator) -> Rows:
    """Lloyd's steps from random rows, on a sample; a center without rows stays where it is."""
    sample = rows[np.sort(rng.choice(len(rows), min(len(rows), ROWS_PER_CENTER * count), replace=False))]
    centers = sample[np.sort(rng.choice(len(sample), count, replace=False))]
    for _ in range(CENTER_STEPS):
        cell = _nearest_center(sample, centers)
        order = np.argsort(cell, kind="stable")
        held, first = np.unique(cell[order], return_index=True)
        centers = centers.copy()
        centers[held] = np.add.reduceat(sample[order], first, axis=0) / np.bincount(cell)[held][:, None]
    return centers


def _nearest_center(rows: Rows, centers: Rows) -> NDArray[np.intp]:
    parts = map_row_blocks(lambda a, b: _half_distances(rows[a:b], centers).argmin(axis=1), *rows.shape)
    return np.concatenate(parts)


def _half_distances(rows: Rows, others: Rows) -> Rows:
    """Half the squared distances, up to a number for each row."""
    distances: Rows = 0.5 * np.einsum("ij,ij->i", others, others) - rows @ others.T
    return distances
