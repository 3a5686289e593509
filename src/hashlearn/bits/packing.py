"""Three forms of the same codes: signs ±1 (int8), bits 0/1 (uint8), packed bytes (uint8).

A packed row has ⌈n_bits / 8⌉ bytes in the order of `numpy.packbits`: the first bit is the highest bit of the first
byte, and the bits that fill the last byte are zero. Every conversion checks its input, because `numpy.packbits` accepts
wrong forms silently: it reads −1 as a one. Each conversion is one pass over the codes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import is_tensor
from hashlearn.core.checks import whole_number

ByteArray: TypeAlias = NDArray[np.uint8]
SignArray: TypeAlias = NDArray[np.int8]


def signs_to_bits(signs: Any) -> ByteArray:
    """+1 → 1 and −1 → 0, shape (n_samples, n_bits).

    >>> signs_to_bits([[1, -1, -1]])
    array([[1, 0, 0]], dtype=uint8)
    """
    return (_two_valued(signs, "signs", (-1, 1)) > 0).astype(np.uint8)


def bits_to_signs(bits: Any) -> SignArray:
    """1 → +1 and 0 → −1, shape (n_samples, n_bits).

    >>> bits_to_signs([[1, 0, 0]])
    array([[ 1, -1, -1]], dtype=int8)
    """
    return np.where(_two_valued(bits, "bits", (0, 1)) != 0, 1, -1).astype(np.int8)


def pack_bits(bits: Any) -> Any:
    """Bits 0/1 of shape (n_samples, n_bits) as bytes of shape (n_samples, ⌈n_bits / 8⌉). A tensor gives a tensor.

    >>> pack_bits([[1, 0, 0, 0, 0, 0, 0, 1, 1]])
    array([[129, 128]], dtype=uint8)
    """
    return pack_tensor(bits) if is_tensor(bits) else np.packbits(_two_valued(bits, "bits", (0, 1)) != 0, axis=1)


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


def unpack_bits(packed: Any, n_bits: int) -> ByteArray:
    """The inverse of `pack_bits`: bits 0/1 of shape (n_samples, n_bits).

    >>> unpack_bits(np.array([[129, 128]], dtype=np.uint8), n_bits=9)
    array([[1, 0, 0, 0, 0, 0, 0, 1, 1]], dtype=uint8)
    """
    return np.unpackbits(packed_codes(packed, "packed", n_bits), axis=1, count=n_bits)


def pack_signs(signs: Any) -> ByteArray:
    """Signs ±1 of shape (n_samples, n_bits) as bytes of shape (n_samples, ⌈n_bits / 8⌉).

    >>> pack_signs([[1, -1, -1, -1]])
    array([[128]], dtype=uint8)
    """
    return np.packbits(_two_valued(signs, "signs", (-1, 1)) > 0, axis=1)


def unpack_signs(packed: Any, n_bits: int) -> SignArray:
    """The inverse of `pack_signs`: signs ±1 of shape (n_samples, n_bits).

    >>> unpack_signs(np.array([[128]], dtype=np.uint8), n_bits=4)
    array([[ 1, -1, -1, -1]], dtype=int8)
    """
    return unpack_bits(packed, n_bits).view(np.int8) * np.int8(2) - np.int8(1)


def packed_codes(codes: Any, name: str = "codes", n_bits: int | None = None) -> ByteArray:
    """``codes`` as an array, refused unless they can be packed codes (of ``n_bits`` bits, if given).

    >>> packed_codes([[1, 2]], name="query_codes")
    Traceback (most recent call last):
        ...
    TypeError: query_codes must be packed codes of dtype uint8, got int64; pack_bits or pack_signs makes them
    """
    array = _matrix(codes, name)
    if array.dtype != np.uint8:
        raise TypeError(
            f"{name} must be packed codes of dtype uint8, got {array.dtype}; pack_bits or pack_signs makes them"
        )
    if n_bits is None:
        return array
    n_bits = whole_number(n_bits, "n_bits", least=1)
    width = -(-n_bits // 8)
    if array.shape[1] != width:
        raise ValueError(f"{name} must have {width} byte(s) in a row for n_bits={n_bits}, got shape {array.shape}")
    pad_mask = (1 << (8 * width - n_bits)) - 1
    if pad_mask and (padded := array[:, -1] & pad_mask).any():
        row = int(np.argmax(padded != 0))
        raise ValueError(
            f"{name} must be zero past bit {n_bits}, but row {row} ends in byte {array[row, -1]:#010b}; "
            f"is n_bits={n_bits} right?"
        )
    return array


def _two_valued(values: Any, name: str, allowed: tuple[int, int]) -> NDArray[Any]:
    array = _matrix(values, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
    wrong = (array != allowed[0]) & (array != allowed[1])
    if wrong.any():
        i, j = (int(index) for index in np.argwhere(wrong)[0])
        other = _hint(array, allowed)
        raise ValueError(f"{name} must hold only {allowed[0]} and {allowed[1]}, got {array[i, j]} at ({i}, {j}){other}")
    return array


def _hint(array: NDArray[Any], allowed: tuple[int, int]) -> str:
    """A hint for values that are signs where bits are expected, or bits where signs are expected."""
    signs = (-1, 1), "; these are signs, see signs_to_bits and pack_signs"
    bits = (0, 1), "; these are bits, see bits_to_signs and pack_bits"
    others, hint = signs if allowed == (0, 1) else bits
    return hint if np.isin(array, others).all() else ""


def _matrix(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array: {error}") from None
    if array.ndim != 2:
        advice = "; reshape(1, -1) makes one code of it" if array.ndim == 1 else ""
        raise ValueError(f"{name} must have 2 dimensions, one row for each sample, got shape {array.shape}{advice}")
    if array.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column, got shape {array.shape}")
    return array
