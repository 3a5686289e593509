"""Finds identical rows of an array or a tensor: hash every row, sort the hashes, compare the rows with equal hashes.

A tensor stays on its device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from hashlearn.core.arrays import EPS, FloatArray, is_tensor, tensor_like
from hashlearn.core.threads import map_row_blocks
from hashlearn.core.thresholds import HOST_ROWS, LOOK_AT_COLUMNS, LOOK_AT_FIRST

HASHED_ROWS = 1 << 14  # of a tensor at once


def merge_rows(P: Any, weights: FloatArray, worthwhile: float) -> tuple[Any, Any] | None:
    """Merge m identical rows p to one row m · p. Returns the new rows, and for each old row its new index.

    Returns None if merging would remove less than the fraction ``worthwhile`` of the rows. Rows with pᵀWp > 0 are not
    merged. See `hashlearn.bqp.presolve`.
    """
    xp, (n, rank) = _module(P), P.shape
    most = (1.0 - worthwhile) * n
    if worthwhile > 0.0 and n > 10 * LOOK_AT_FIRST:
        sample = P[:: n // LOOK_AT_FIRST]
        if len(xp.unique(_hashes(sample))) == len(sample):
            return None
    if rank > 2 * LOOK_AT_COLUMNS and len(xp.unique(_hashes(P[:, -LOOK_AT_COLUMNS:]))) > most:
        return None
    first, groups = _first_of_each(_hashes(P))
    if len(first) > most:
        return None
    alone = _not_mergeable(P, weights, first, groups)
    if bool(alone.any()):
        first, groups = _first_of_each(xp.where(alone, len(first) + xp.arange(n, device=P.device), groups))
    if len(first) == n:
        return None
    merged = xp.asarray(P[first], dtype=xp.float64) * xp.bincount(groups)[:, None]
    if len(first) > HOST_ROWS:  # smaller problems are solved in float64
        exact, merged = merged, xp.asarray(merged, dtype=P.dtype)
        if not bool((merged == exact).all()):
            return None  # rounded to the dtype of P it would be another problem, whose bound proves nothing here
    return merged, groups


def _first_of_each(labels: Any) -> tuple[Any, Any]:
    """The first place of each label, in that order, and for each row the index of its label."""
    xp = _module(labels)
    order = xp.argsort(labels, stable=True)
    ordered = labels[order]
    starts = xp.concatenate([xp.ones_like(ordered[:1], dtype=xp.bool), ordered[1:] != ordered[:-1]])
    first = order[starts]
    by_place = xp.argsort(first)
    place, groups = xp.empty_like(first), xp.empty_like(order)
    place[by_place] = xp.arange(len(first), device=labels.device)
    groups[order] = place[xp.cumsum(starts, 0) - 1]
    return first[by_place], groups


def _not_mergeable(P: Any, weights: FloatArray, first: Any, groups: Any) -> Any:
    """Rows that differ from their group's first row (a hash collision), or whose diagonal entry may be positive."""
    repels = _by_blocks(lambda a, b: _may_repel(P[first[a:b]], weights), P[: len(first)])

    def check(a: int, b: int) -> Any:
        differs = (P[a:b] != P[first[groups[a:b]]]).any(axis=1)
        return differs | repels[groups[a:b]]

    return _by_blocks(check, P)


def _may_repel(rows: Any, weights: FloatArray) -> Any:
    """Whether pᵀWp could be positive in exact arithmetic: rounding decides against merging, unless all are integers."""
    xp = _module(rows)
    rows, w = (xp.asarray(values, dtype=xp.float64, device=rows.device) for values in (rows, weights))
    squares = rows * rows
    rounding = (len(weights) + 2) * EPS * (squares @ abs(w))
    exact = (rows == rows.round()).all(axis=1) & bool((weights == np.rint(weights)).all()) & (rounding < 1.0)
    return squares @ w > xp.where(exact, 0.0, -rounding)


def _hashes(P: Any) -> Any:
    """64 bits for each row; −0.0 hashes as 0.0. For tensors a random combination of the bits, modulo 2⁶⁴."""
    if not is_tensor(P):
        P = np.ascontiguousarray(P)
        return _by_blocks(lambda a, b: _hash_rows(P[a:b]), P)
    torch = _module(P)
    # In pieces of 32 bits, because the low bits of a product do not depend on the high bits of its factors.
    odd = np.random.default_rng(0).integers(-(2**62), 2**62, P.shape[1] * P.element_size() // 4) * 2 + 1
    factors = tensor_like(odd, P, torch.int64)
    return _by_blocks(lambda a, b: ((P[a:b] + 0.0).view(torch.int32).long() * factors).sum(dim=1), P)


def _by_blocks(function: Callable[[int, int], Any], P: Any) -> Any:
    """``function(first, last)`` of all blocks of rows of P, joined."""
    if not is_tensor(P):
        return np.concatenate(map_row_blocks(function, *P.shape))
    ends = range(0, len(P), HASHED_ROWS)
    return _module(P).cat([function(first, min(first + HASHED_ROWS, len(P))) for first in ends])


def _module(P: Any) -> Any:
    """``torch`` for a tensor, else ``numpy``."""
    if not is_tensor(P):
        return np
    import torch

    return torch


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
