"""Products of many rows with thin matrices, limited by memory bandwidth only. They are for searching, not for proofs.

Three things double their speed on a GPU: rows padded to a multiple of 8 numbers (`buffer`), small factors stored column
by column and not too thin, and TF32, which rounds factors to 11 bits. Results of `rough_products` are only proposals.
Reported values and bounds are computed elsewhere, from the rows as they are.
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
    """Inside the block, products of float32 matrices on a GPU may round as TF32 does."""
    if like.device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def small_factor(B: Tensor, length: int) -> Tensor:
    """B padded with zeros to ``length`` rows and at least 8 columns, stored column by column."""
    padded = B.new_zeros((max(B.shape[1], FEWEST_COLUMNS), length)).T
    padded[: B.shape[0], : B.shape[1]] = B
    return padded


def thin_product(P: Tensor, B: Tensor) -> Tensor:
    """P B for B (rank, k) with few columns. Reads P once."""
    rows = whole_rows(P)
    if B.shape[1] == 1:
        return rows @ torch.nn.functional.pad(B, (0, 0, 0, rows.shape[1] - B.shape[0]))
    return (rows @ small_factor(B, rows.shape[1]))[:, : B.shape[1]]


def thin_sum(P: Tensor, V: Tensor) -> Tensor:
    """PᵀV for V (n, k) with few columns, in float64, on the device. Reads P once."""
    k = V.shape[1]
    if 1 < k < FEWEST_COLUMNS:
        V = torch.nn.functional.pad(V, (0, FEWEST_COLUMNS - k))
    return block_products(whole_rows(P), V)[: P.shape[1], :k]
