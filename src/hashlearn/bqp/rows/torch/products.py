"""Products of many rows with thin matrices, at the memory's bandwidth: what searches, not what proves.

Three things double their speed on a GPU: rows whose length is a multiple of 8 numbers (those of a `buffer`, which end
in zeros), small factors stored column by column and not too thin, and TF32, which rounds factors to 11 bits. What comes
of `rough_products` is a proposal; reported values and bounds are computed elsewhere, from the rows as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from hashlearn.core.arrays import Tensor
from hashlearn.linalg.tensors import block_products, whole_rows

FEWEST_COLUMNS = 8


@contextmanager
def rough_products(like: Tensor) -> Iterator[None]:
    """Inside, products of float32 matrices on a GPU may round as TF32 does."""
    if like.device.type != "cuda":
        yield
        return
    kept = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(kept)


def small_factor(B: Tensor, length: int) -> Tensor:
    """B with rows of zeros up to ``length`` and columns of zeros up to a few, stored column by column."""
    padded = B.new_zeros((max(B.shape[1], FEWEST_COLUMNS), length)).T
    padded[: B.shape[0], : B.shape[1]] = B
    return padded


def thin_product(P: Tensor, B: Tensor) -> Tensor:
    """P B for a B (rank, k) of few columns. One read of P."""
    rows = whole_rows(P)
    if B.shape[1] == 1:
        return rows @ torch.nn.functional.pad(B, (0, 0, 0, rows.shape[1] - B.shape[0]))
    return (rows @ small_factor(B, rows.shape[1]))[:, : B.shape[1]]


def thin_sum(P: Tensor, V: Tensor) -> Tensor:
    """PᵀV for a V (n, k) of few columns, float64, on the device. One read of P."""
    k = V.shape[1]
    if 1 < k < FEWEST_COLUMNS:
        V = torch.nn.functional.pad(V, (0, FEWEST_COLUMNS - k))
    return block_products(whole_rows(P), V)[: P.shape[1], :k]
