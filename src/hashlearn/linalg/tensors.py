"""Sums over blocks of rows of tensors, products with thin matrices, and the checks and conversions for all passes.

A block is one entry of a batched product. So a sum over rows runs in parallel and in a fixed order, with short sums in
the tensor's own dtype inside a block and float64 across blocks.

Products with thin matrices are limited by memory bandwidth only. They are for searching, not for proofs. Three things
double their speed on a GPU: rows padded to a multiple of 8 numbers (`buffer`), small factors stored column by column
and not too thin, and TF32, which rounds factors to 11 bits. Results of `allow_tf32` are only proposals. Reported
values and bounds are computed elsewhere, from the rows as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from hashlearn.core.arrays import FloatArray, Tensor, tensor_like
from hashlearn.core.checks import LARGEST_ENTRY, LARGEST_SINGLE

ALIGNED = 8  # numbers; rows of a buffer begin at multiples of it, as fast products need
BLOCK = 4096  # rows in a block
FEWEST_COLUMNS = 8  # of a thin matrix; others are padded
FEW_WEIGHTS = 4  # groups of adjacent columns of equal weight
SHORT_BLOCK = 128  # rows in a block whose sums must have little rounding
CHUNK = 16 * BLOCK  # rows of a wide temporary
GRAM_PANEL = 256  # columns: a Gram matrix is computed panel by panel, each pair once
GRAM_CHUNK = 64 * BLOCK  # rows of a temporary on a device, enough to use all of the device

_one_precision = threading.RLock()


def chunks(n: int, rows: int = CHUNK) -> Iterator[slice]:
    """Consecutive slices of ``rows`` rows."""
    return (slice(first, min(first + rows, n)) for first in range(0, n, rows))


def block_products(left: Tensor, right: Tensor, block: int = BLOCK) -> Tensor:
    """leftᵀ right over all rows, float64, on the device."""
    n = left.shape[0]
    whole = n // block * block
    if not whole:
        return (left.T @ right).double()
    a, b = (M[:whole].unflatten(0, (-1, block)) for M in (left, right))
    total = torch.bmm(a.transpose(1, 2), b).sum(dim=0, dtype=torch.float64)
    return total if whole == n else total + left[whole:].T @ right[whole:]


def buffer(n: int, columns: int, like: Tensor, dtype: Any = None) -> Tensor:
    """Zeros (n, columns) on the device of ``like``, with aligned rows."""
    padded = -(-columns // ALIGNED) * ALIGNED
    return torch.zeros((n, padded), dtype=dtype or like.dtype, device=like.device)[:, :columns]


def sums_of_squares(P: Tensor, weights: FloatArray) -> tuple[Tensor, Tensor]:
    """Σ w p² and Σ p² of every row. Adjacent columns of equal weight, as bits have, need no temporary of squares."""
    ends = [0, *(np.flatnonzero(np.diff(weights)) + 1), len(weights)]
    blocks: Iterable[Tensor] = (P[rows].square() for rows in chunks(len(P)))
    if len(ends) <= FEW_WEIGHTS + 1:
        sums = [torch.linalg.vector_norm(P[:, a:b], dim=1).square() for a, b in pairwise(ends)]
        blocks, weights = [torch.stack(sums, dim=1)], weights[ends[:-1]]
    pair = tensor_like(np.column_stack([weights, np.ones(len(weights))]), P)
    both = torch.cat([squares @ pair for squares in blocks])
    return both[:, :1].contiguous(), both[:, 1]


def with_padding(P: Tensor) -> Tensor:
    """View P with its padding columns, if it is a `buffer` or a slice of one. Other tensors are returned unchanged.

    Callers may assume only that the padding is finite.
    """
    n, rank = P.shape
    wide, size = -(-rank // ALIGNED) * ALIGNED, P.untyped_storage().nbytes() // P.element_size()
    if wide == rank or P.stride() != (wide, 1) or P.storage_offset() % wide or P.storage_offset() + n * wide > size:
        return P
    return P.as_strided((n, wide), (wide, 1))


def float64_gram(P: Tensor, divisor: Tensor | None) -> Tensor:
    """Pᵀ Diag(divisor)⁻¹ P of exactly this P, every operation in float64. O(n rank²)."""
    n, rank = P.shape
    P = with_padding(P)
    wide = P.shape[1]
    total = torch.zeros((wide, wide), dtype=torch.float64, device=P.device)
    panels = list(chunks(wide, GRAM_PANEL))
    at_once = min(n, CHUNK if P.device.type == "cpu" else GRAM_CHUNK)
    space = buffer(at_once, wide, P, torch.float64)
    scale = (P.new_ones(n) if divisor is None else divisor).double().sqrt().reciprocal_()[:, None]
    for rows in chunks(n, at_once):
        Q = torch.mul(P[rows], scale[rows], out=space[: rows.stop - rows.start])
        for i, a in enumerate(panels):
            for b in panels[i:]:
                total[a, b] += block_products(Q[:, a], Q[:, b])
    upper = total.triu(1)
    return (upper + upper.T + total.diagonal().diag())[:rank, :rank]


def checked_tensor(P: Tensor, name: str, ndim: int, limit: float | None = None) -> Tensor:
    """P if it is a finite floating tensor outside autograd, with no entry above ``limit``; else a clear error.

    Without a limit it is what the dtype of P can square. With one, a float32 tensor that exceeds that becomes float64.
    """
    if P.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"{name} must be a float32 or float64 tensor, got {P.dtype}; convert it with {name}.float()")
    if P.requires_grad:
        raise ValueError(f"{name} must not require a gradient: nothing here is differentiated; pass {name}.detach()")
    if P.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got layout {P.layout}")
    if P.dim() != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {tuple(P.shape)}")
    if P.numel() == 0:
        raise ValueError(f"{name} is empty (shape {tuple(P.shape)}); at least one entry is needed")
    largest = max(float(torch.linalg.vector_norm(P[rows], float("inf"))) for rows in chunks(P.shape[0]))
    squarable = LARGEST_SINGLE if P.dtype == torch.float32 else LARGEST_ENTRY
    limit = squarable if limit is None else limit
    if not np.isfinite(largest):
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if largest > limit:
        raise ValueError(f"{name} has an entry of size {largest:.3g}; scale it below {limit:.0e} first")
    return P.double() if largest > squarable else P.contiguous()


def checked_signs(x: Any, shape: tuple[int, ...], like: Tensor, name: str) -> Tensor:
    """A copy of x in the dtype of ``like``, refused unless it is a tensor of ±1 of that shape on the same device."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} must be a tensor on {like.device} as P is, got {type(x).__name__}")
    if x.device != like.device:
        raise ValueError(f"{name} is on {x.device}, but P is on {like.device}; move one of them")
    if any(size not in (-1, got) for size, got in zip(shape, x.shape, strict=False)) or x.dim() != len(shape):
        expected = ", ".join("any" if size == -1 else str(size) for size in shape)
        raise ValueError(f"{name} must have shape ({expected}), got {tuple(x.shape)}")
    signs = x.detach().to(like.dtype, copy=True)
    if not bool((signs.abs() == 1.0).all()):
        raise ValueError(f"{name} must hold only -1 and +1")
    return signs


def allow_tf32(like: Tensor) -> AbstractContextManager[None]:
    """Inside the block, products of float32 matrices on a GPU may round as TF32 does."""
    return _precision("high", "tf32") if like.device.type == "cuda" else nullcontext()


def forbid_tf32() -> AbstractContextManager[None]:
    """Inside the block, products of float32 matrices round as float32 does, whatever PyTorch is set to."""
    return _precision("highest", "ieee")


@contextmanager
def _precision(name: str, newer_name: str) -> Iterator[None]:
    """PyTorch has one precision for the process, so only one of our threads at a time may need a certain one."""
    with _one_precision, ExitStack() as restored:
        try:
            restored.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
            torch.set_float32_matmul_precision(name)
        except RuntimeError:  # the user set the newer switches, and PyTorch refuses to mix them with the older one
            for switch in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):
                restored.callback(setattr, switch, "fp32_precision", switch.fp32_precision)
                switch.fp32_precision = newer_name
        yield


def padded_factor(B: Tensor, length: int) -> Tensor:
    """B padded with zeros to ``length`` rows and at least 8 columns, stored column by column."""
    padded = B.new_zeros((max(B.shape[1], FEWEST_COLUMNS), length)).T
    padded[: B.shape[0], : B.shape[1]] = B
    return padded


def thin_product(P: Tensor, B: Tensor) -> Tensor:
    """P B for B (rank, k) with few columns. Reads P once."""
    rows = with_padding(P)
    if B.shape[1] == 1:
        return rows @ torch.nn.functional.pad(B, (0, 0, 0, rows.shape[1] - B.shape[0]))
    return (rows @ padded_factor(B, rows.shape[1]))[:, : B.shape[1]]


def transposed_product(P: Tensor, V: Tensor) -> Tensor:
    """PᵀV for V (n, k) with few columns, in float64, on the device. Reads P once."""
    k = V.shape[1]
    if 1 < k < FEWEST_COLUMNS:
        V = torch.nn.functional.pad(V, (0, FEWEST_COLUMNS - k))
    return block_products(with_padding(P), V)[: P.shape[1], :k]
