"""Hamming distance of packed codes, through 64-bit words.

For signs z, z' of n_bits bits, zᵀz' = n_bits − 2 · distance, eq. (2). A pair costs one xor and one population count for
every 64 bits. The kernels read the database in ``planes``: all words of one position are stored together. The compiler
can then use vector instructions for any code width.

For tensors, with bits as signs, distance = (n_bits − inner product) / 2. This is exact in half precision with float32
sums, and matrix products are what accelerators do fastest.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numba.extending import intrinsic
from numpy.typing import NDArray

from hashlearn.bits.packing import packed_codes
from hashlearn.core.arrays import numbers_at_once
from hashlearn.core.threads import map_row_blocks

WordArray: TypeAlias = NDArray[np.uint64]

LONGEST_HALF = 2048  # bits up to which float16 holds inner products of signs exactly


def hamming_distances(a: Any, b: Any) -> NDArray[np.int32]:
    """Distances of all pairs of packed codes, shape (n_a, n_b). This takes n_a · n_b numbers: use it for small blocks.

    >>> hamming_distances(np.array([[0b11000000]], np.uint8), np.array([[0b10000000], [0b00110000]], np.uint8))
    array([[1, 4]], dtype=int32)
    """
    a, b = packed_codes(a, "a"), packed_codes(b, "b")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"a and b must have rows of equal width, got shapes {a.shape} and {b.shape}")
    words, planes = as_words(a), np.ascontiguousarray(as_words(b).T)
    out = np.empty((len(a), len(b)), np.int32)
    map_row_blocks(lambda first, last: _all_distances(words[first:last], planes, out[first:last]), len(a))
    return out


def as_words(packed: Any) -> WordArray:
    """Packed rows as contiguous rows of ⌈width / 8⌉ 64-bit words; missing bytes are zero.

    Equality and the number of differing bits are preserved. The byte order is the machine's, so the words have no
    meaning as numbers.

    >>> as_words(np.zeros((2, 9), dtype=np.uint8)).shape
    (2, 2)
    """
    packed = packed_codes(packed, "packed")
    n, width = packed.shape
    padded = np.zeros((n, 8 * -(-width // 8)), np.uint8)
    padded[:, :width] = packed
    return padded.view(np.uint64)


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


@intrinsic
def popcount(typing_context, word):  # type: ignore[no-untyped-def]
    """The number of ones in a word, for use inside kernels: one machine instruction, or its vector form."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return word(word), generate


@njit(cache=True, nogil=True)
def distances_to_all(code, planes, out):  # type: ignore[no-untyped-def]
    """Write the distances of one code, a row of words, to every column of ``planes`` into ``out``."""
    n_words, n = planes.shape
    for j in range(n):
        out[j] = popcount(code[0] ^ planes[0, j])
    for w in range(1, n_words):
        for j in range(n):
            out[j] += popcount(code[w] ^ planes[w, j])


@njit(cache=True, nogil=True)
def weighted_distances_to_all(code, digits, planes, out):  # type: ignore[no-untyped-def]
    """`distances_to_all` with weights: bit b of ``digits[p]`` says that a difference in bit b of the code counts 2ᵖ.

    There are three digits or more.
    """
    one, two = np.uint64(1), np.uint64(2)
    for w in range(planes.shape[0]):
        ones, twos, fours = digits[0, w], digits[1, w], digits[2, w]
        for j in range(planes.shape[1]):
            differ = code[w] ^ planes[w, j]
            distance = popcount(differ & ones) + (popcount(differ & twos) << one) + (popcount(differ & fours) << two)
            out[j] = distance if w == 0 else out[j] + distance
        for place in range(3, digits.shape[0]):
            for j in range(planes.shape[1]):
                out[j] += popcount((code[w] ^ planes[w, j]) & digits[place, w]) << np.uint64(place)


@njit(cache=True, nogil=True)
def _all_distances(words, planes, out):  # type: ignore[no-untyped-def]
    for i in range(words.shape[0]):
        distances_to_all(words[i], planes, out[i])
