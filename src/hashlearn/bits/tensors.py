"""Codes as tensors: the same bytes as NumPy's, on the tensor's device, and Hamming distances by matrix products.

With bits as signs, distance = (n_bits − inner product) / 2. This is exact in half precision with float32 sums, and
matrix products are what accelerators do fastest.
"""

from __future__ import annotations

from typing import Any

from hashlearn.core.arrays import numbers_at_once

LONGEST_HALF = 2048  # bits up to which float16 holds inner products of signs exactly


def pack_tensor(bits: Any) -> Any:
    """`pack_bits` of a tensor of 0/1, shape (n, n_bits)."""
    import torch

    if bits.dim() != 2 or bits.shape[1] == 0:
        raise ValueError(f"bits must have 2 dimensions and at least one column, got shape {tuple(bits.shape)}")
    if not bool(((bits == 0) | (bits == 1)).all()):
        raise ValueError("bits must hold only 0 and 1")
    padded = torch.nn.functional.pad(bits.to(torch.uint8), (0, -bits.shape[1] % 8))
    places = torch.arange(7, -1, -1, dtype=torch.uint8, device=bits.device)
    return (padded.unflatten(1, (-1, 8)) << places).sum(dim=2, dtype=torch.uint8)


def packed_to_signs(packed: Any) -> Any:
    """Packed bytes as ±1 of shape (n, 8 · bytes), in the fastest dtype for products. Pad bits become −1."""
    import torch

    if packed.dtype != torch.uint8 or packed.dim() != 2:
        raise TypeError(f"codes must be packed, a 2-D uint8 tensor, got {packed.dtype} of shape {tuple(packed.shape)}")
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device)
    bits = (packed[:, :, None] >> shifts) & 1
    exact_in_half = packed.is_cuda and 8 * packed.shape[1] <= LONGEST_HALF
    dtype = torch.float16 if exact_in_half else torch.float32
    return (2 * bits.flatten(1).to(dtype) - 1).contiguous()


def require_comparable(queries: Any, database: Any) -> None:
    """Refuse tensors of codes that are on different devices or have different widths."""
    if queries.device != database.device:
        raise ValueError(f"queries are on {queries.device}, but the database is on {database.device}; move one of them")
    if queries.shape[1:] != database.shape[1:]:
        shapes = f"{tuple(queries.shape)} and {tuple(database.shape)}"
        raise ValueError(f"queries and database must have rows of equal width, got {shapes}")


def items_at_once(queries: Any) -> int:
    """How many items to compare with these queries in one product."""
    return max(1, numbers_at_once(queries.device, on_cpu=1 << 21, elsewhere=1 << 27) // max(len(queries), 1))


def sign_distances(queries: Any, database: Any) -> Any:
    """Hamming distances, int32 (n_queries, n_database), of codes as `packed_to_signs` returns them."""
    import torch

    products = queries @ database.T
    return ((queries.shape[1] - products.float()) * 0.5).round().to(torch.int32)
