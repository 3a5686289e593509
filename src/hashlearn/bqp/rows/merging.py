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


def merge_rows(P: Any, weights: FloatArray, worthwhile: float) -> tuple[Any, Any] | None:
    """``(merged rows, groups)`` of `Rows.merged`."""
    n, rank = P.shape
    if worthwhile > 0.0 and n > 10 * LOOK_AT_FIRST:
        some = P[:: n // LOOK_AT_FIRST]
        if _count_distinct(some) == len(some):
            return None
    if rank > 2 * LOOK_AT_COLUMNS and _count_distinct(P[:, -LOOK_AT_COLUMNS:]) > (1.0 - worthwhile) * n:
        return None
    first, groups = _first_of_each(_hashes(P))
    if len(first) > (1.0 - worthwhile) * n:
        return None
    xp = _module(P)
    alone = _not_mergeable(P, weights, first, groups)
    if bool(alone.any()):
        first, groups = _first_of_each(xp.where(alone, len(first) + _numbers(n, P), groups))
    if len(first) == n:
        return None
    counts = xp.bincount(groups, minlength=len(first))[:, None]
    if not is_tensor(P):
        return P[first] * counts, groups
    merged = P[first].double() * counts
    if len(first) > HOST_ROWS:  # smaller problems are solved in float64
        exact, merged = merged, merged.to(P.dtype)
        if not bool((merged == exact).all()):
            return None  # rounded to the dtype of P it would be another problem, whose bound proves nothing here
    return merged, groups


def _first_of_each(labels: Any) -> tuple[Any, Any]:
    """The first place of each label, in that order, and for each row the index of its label."""
    if is_tensor(labels):
        values, groups = labels.unique(return_inverse=True)
        first = labels.new_full((len(values),), len(labels))
        first.scatter_reduce_(0, groups, _numbers(len(labels), labels), "amin")
    else:
        _, first, groups = np.unique(labels, return_index=True, return_inverse=True)
    order = first.argsort()
    place = _module(labels).empty_like(order)
    place[order] = _numbers(len(order), labels)
    return first[order], place[groups]


def _not_mergeable(P: Any, weights: FloatArray, first: Any, groups: Any) -> Any:
    """Rows that differ from their group's first row (a hash collision), or whose diagonal entry may be positive."""
    repels = _by_blocks(lambda a, b: _may_repel(P[first[a:b]], weights), P[: len(first)])

    def check(a: int, b: int) -> Any:
        differs = (P[a:b] != P[first[groups[a:b]]]).any(axis=1)
        return differs | repels[groups[a:b]]

    return _by_blocks(check, P)


def _may_repel(rows: Any, weights: FloatArray) -> Any:
    """Whether pᵀWp could be positive in exact arithmetic: rounding decides against merging, unless all are integers."""
    w: Any = weights
    if is_tensor(rows):
        rows = rows.double()
        w = tensor_like(weights, rows)
    squares = rows * rows
    rounding = (len(weights) + 2) * EPS * (squares @ abs(w))
    exact = (rows == rows.round()).all(axis=1) & bool((weights == np.rint(weights)).all()) & (rounding < 1.0)
    return squares @ w > _module(rows).where(exact, 0.0, -rounding)


def _count_distinct(P: Any) -> int:
    return len(_module(P).unique(_hashes(P)))


def _hashes(P: Any) -> Any:
    """64 bits for each row; −0.0 hashes as 0.0. For tensors a random combination of the bits, modulo 2⁶⁴."""
    if not is_tensor(P):
        P = np.ascontiguousarray(P)
        return _by_blocks(lambda a, b: _hash_rows(P[a:b]), P)
    torch = _module(P)
    integers = torch.int32 if P.dtype == torch.float32 else torch.int64
    factors = np.random.default_rng(0).integers(-(2**62), 2**62, P.shape[1]) * 2 + 1
    r = tensor_like(factors, P, torch.int64)
    return _by_blocks(lambda a, b: ((P[a:b] + 0.0).view(integers).long() * r).sum(dim=1), P, 1 << 14)


def _by_blocks(function: Callable[[int, int], Any], P: Any, rows: int = 1 << 16) -> Any:
    """``function(first, last)`` of all blocks of rows of P, joined. A block of a tensor has ``rows`` rows."""
    if not is_tensor(P):
        return np.concatenate(map_row_blocks(function, *P.shape))
    return _module(P).cat([function(a, min(a + rows, len(P))) for a in range(0, len(P), rows)])


def _numbers(n: int, like: Any) -> Any:
    """0 to n − 1, where ``like`` is."""
    return _module(like).arange(n, device=like.device) if is_tensor(like) else np.arange(n)


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
