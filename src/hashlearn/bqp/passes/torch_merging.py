"""Which rows of a tensor are identical: hashes of their bits, a sort of them, and a second look at the rows."""

from __future__ import annotations

import numpy as np
import torch

from hashlearn.bqp.passes.base import FloatArray
from hashlearn.bqp.passes.numpy_merging import LOOK_AT_COLUMNS, LOOK_AT_FIRST
from hashlearn.bqp.passes.torch_blocks import Tensor, chunks, on_device


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
    alone = _not_mergeable(P, weights, first[groups])
    if bool(alone.any()):
        numbers = len(first) + torch.arange(n, device=P.device)
        first, groups = _first_of_each(torch.where(alone, numbers, groups))
    counts = torch.bincount(groups, minlength=len(first))
    return P[first] * counts.to(P.dtype)[:, None], groups


def _first_of_each(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Where each label occurs first, in that order, and for each row the number of its label."""
    values, groups = torch.unique(labels, return_inverse=True)
    n = len(labels)
    first = torch.full((len(values),), n, device=labels.device)
    first.scatter_reduce_(0, groups, torch.arange(n, device=labels.device), "amin")
    first, order = first.sort()
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=labels.device)
    return first, place[groups]


def _not_mergeable(P: Tensor, weights: FloatArray, first: Tensor) -> Tensor:
    """Rows that differ from their group's first row (a hash collision), or whose diagonal entry is positive."""
    w = on_device(weights, P, torch.float64)
    return torch.cat(
        [(P[rows] != P[first[rows]]).any(dim=1) | (P[rows].double().square() @ w > 0.0) for rows in chunks(P.shape[0])]
    )


def _hashes(P: Tensor) -> Tensor:
    """A random combination of the bits of each row, modulo 2⁶⁴; −0.0 hashes as 0.0."""
    integers = torch.int32 if P.dtype == torch.float32 else torch.int64
    factors = np.random.default_rng(0).integers(-(2**62), 2**62, P.shape[1]) * 2 + 1
    r = torch.as_tensor(factors, device=P.device)
    return torch.cat([((P[rows] + 0.0).view(integers).long() * r).sum(dim=1) for rows in chunks(P.shape[0], 1 << 14)])
