"""Finds identical rows of a NumPy array: hash every row, sort the hashes, compare the rows with equal hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.rows.inertia import EPS
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks
from hashlearn.core.thresholds import LOOK_AT_COLUMNS, LOOK_AT_FIRST


def merge_rows(P: FloatArray, weights: FloatArray, worthwhile: float) -> tuple[FloatArray, NDArray[np.intp]] | None:
    """``(merged rows, groups)`` of `Rows.merged`."""
    n, rank = P.shape
    if worthwhile > 0.0 and n > 10 * LOOK_AT_FIRST:
        some = _hash_rows(P[:: n // LOOK_AT_FIRST])
        if len(np.unique(some)) == len(some):
            return None
    if rank > 2 * LOOK_AT_COLUMNS:
        few = np.ascontiguousarray(P[:, -LOOK_AT_COLUMNS:])
        if len(np.unique(_hash_rows(few))) > (1.0 - worthwhile) * n:
            return None
    hashes = np.concatenate(map_row_blocks(lambda a, b: _hash_rows(P[a:b]), n, rank))
    first, groups = _first_of_each(hashes)
    if len(first) > (1.0 - worthwhile) * n:
        return None
    alone = _not_mergeable(P, weights, first, groups)
    if alone.any():
        first, groups = _first_of_each(np.where(alone, len(first) + np.arange(n), groups))
    counts = np.bincount(groups, minlength=len(first))
    return P[first] * counts[:, None], groups


def _first_of_each(labels: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first place of each label, in that order, and for each row the index of its label."""
    _, first, groups = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[groups]


def _not_mergeable(
    P: FloatArray, weights: FloatArray, first: NDArray[np.intp], groups: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Rows that differ from their group's first row (a hash collision), or whose diagonal entry may be positive."""
    repels = _may_repel(P[first], weights)

    def check(a: int, b: int) -> NDArray[np.bool_]:
        differs = (P[a:b] != P[first[groups[a:b]]]).any(axis=1)
        return differs | repels[groups[a:b]]

    return np.concatenate(map_row_blocks(check, *P.shape))


def _may_repel(rows: FloatArray, weights: FloatArray) -> NDArray[np.bool_]:
    """Whether pᵀWp could be positive in exact arithmetic: rounding decides against merging, unless all are integers."""
    squares = rows * rows
    rounding = (len(weights) + 2) * EPS * (squares @ np.abs(weights))
    exact = (rows == np.rint(rows)).all(axis=1) & bool((weights == np.rint(weights)).all()) & (rounding < 1.0)
    return squares @ weights > np.where(exact, 0.0, -rounding)


@njit(cache=True, nogil=True)
def _hash_rows(P):  # type: ignore[no-untyped-def]
    """64-bit hash of the bits of each row; −0.0 hashes as 0.0."""
    n, rank = P.shape
    out = np.empty(n, np.uint64)
    scratch = np.empty(1)
    bits = scratch.view(np.uint64)
    for i in range(n):
        h = np.uint64(14695981039346656037)
        for j in range(rank):
            scratch[0] = P[i, j] + 0.0
            h = (h ^ bits[0]) * np.uint64(1099511628211)
            h ^= h >> np.uint64(29)
        out[i] = h
    return out
