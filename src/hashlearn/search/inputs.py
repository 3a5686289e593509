"""Checks of codes and ids. None of them is an ``assert``, so they also run under ``python -O``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import packed_codes
from hashlearn.core.checks import whole_number

# The kernels store distances in 16 bits.
MOST_BITS = 32_760


def require_n_bits(n_bits: Any) -> int:
    """The number of bits, refused unless it is an integer from 1 to `MOST_BITS`."""
    return whole_number(n_bits, "n_bits", least=1, most=MOST_BITS)


def checked_codes(codes: Any, n_bits: int, name: str = "codes") -> NDArray[np.uint8]:
    """C-contiguous packed codes of ``n_bits`` bits, refused if width, dtype or pad bits are wrong."""
    return np.ascontiguousarray(packed_codes(codes, name, n_bits))


def checked_ids(ids: Any, n: int | None = None) -> NDArray[np.int64]:
    """Ids as int64, refused unless they are distinct integers of at least 0 (``n`` of them, if given)."""
    array = np.asarray(ids)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ValueError(f"ids must have 1 dimension, got shape {array.shape}")
    if n is not None and len(array) != n:
        raise ValueError(f"ids must have one entry for each of the {n} code(s), got {len(array)}")
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {array.dtype}")
    if array.min() < 0 or array.max() > np.iinfo(np.int64).max:
        raise ValueError("ids must be from 0 to 2**63 - 1; -1 stands for nothing found")
    array = array.astype(np.int64)
    unique, counts = np.unique(array, return_counts=True)
    if len(unique) != len(array):
        raise ValueError(f"ids must be distinct, got {unique[counts > 1][0]} more than once")
    return array
