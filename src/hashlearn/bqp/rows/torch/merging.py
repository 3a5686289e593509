"""Finds identical rows of a tensor, as `numpy_merging` does: by hashes, then by a comparison of the rows."""

from __future__ import annotations

import numpy as np
import torch

from hashlearn.bqp.rows.inertia import EPS
from hashlearn.core.arrays import FloatArray, Tensor, tensor_like
from hashlearn.core.thresholds import HOST_ROWS, LOOK_AT_COLUMNS, LOOK_AT_FIRST
from hashlearn.linalg.tensors import chunks


def merge_rows(P: Tensor, weights: FloatArray, worthwhile: float) -> tuple[Tensor, Tensor] | None:
    """``(merged rows, groups)`` of `Rows.merged`."""
    n, rank = P.shape
    if worthwhile > 0.0 and n > 10 * LOOK_AT_FIRST:
        some = P[:: n // LOOK_AT_FIRST]
        if len(torch.unique(_hashes(some))) == len(some):
            return None
    if rank > 2 * LOOK_AT_COLUMNS and len(torch.unique(_hashes(P[:, -LOOK_AT_COLUMNS:]))) > (1.0 - worthwhile) * n:
        return None
    first, groups = _first_of_each(_hashes(P))
    if len(first) > (1.0 - worthwhile) * n:
        return None
    alone = _not_mergeable(P, weights, first, groups)
    if bool(alone.any()):
        numbers = len(first) + torch.arange(n, device=P.device)
        first, groups = _first_of_each(torch.where(alone, numbers, groups))
    counts = torch.bincount(groups, minlength=len(first))
    merged = P[first].double() * counts[:, None]
    if len(first) > HOST_ROWS:  # smaller problems are solved in float64
        exact, merged = merged, merged.to(P.dtype)
        if not bool((merged == exact).all()):
            return None  # rounded to the dtype of P it would be another problem, whose bound proves nothing here
    return merged, groups


def _first_of_each(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The first place of each label, in that order, and for each row the index of its label."""
    values, groups = torch.unique(labels, return_inverse=True)
    n = len(labels)
    first = torch.full((len(values),), n, device=labels.device)
    first.scatter_reduce_(0, groups, torch.arange(n, device=labels.device), "amin")
    first, order = first.sort()
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=labels.device)
    return first, place[groups]


def _not_mergeable(P: Tensor, weights: FloatArray, first: Tensor, groups: Tensor) -> Tensor:
    """Rows that differ from their group's first row (a hash collision), or whose diagonal entry may be positive."""
    repels = torch.cat([_may_repel(P[first[rows]].double(), weights) for rows in chunks(len(first))])
    like = first[groups]
    return repels[groups] | torch.cat([(P[rows] != P[like[rows]]).any(dim=1) for rows in chunks(P.shape[0])])


def _may_repel(rows: Tensor, weights: FloatArray) -> Tensor:
    """`numpy_merging._may_repel` for tensors."""
    w = tensor_like(weights, rows)
    squares = rows.square()
    rounding = (len(weights) + 2) * EPS * (squares @ w.abs())
    exact = (rows == rows.round()).all(dim=1) & bool((weights == np.rint(weights)).all()) & (rounding < 1.0)
    return squares @ w > torch.where(exact, 0.0, -rounding)


def _hashes(P: Tensor) -> Tensor:
    """A random combination of the bits of each row, modulo 2⁶⁴; −0.0 hashes as 0.0."""
    integers = torch.int32 if P.dtype == torch.float32 else torch.int64
    factors = np.random.default_rng(0).integers(-(2**62), 2**62, P.shape[1]) * 2 + 1
    r = torch.as_tensor(factors, device=P.device)
    return torch.cat([((P[rows] + 0.0).view(integers).long() * r).sum(dim=1) for rows in chunks(P.shape[0], 1 << 14)])
