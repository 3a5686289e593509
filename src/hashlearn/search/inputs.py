"""What every search is given, checked at the door: codes, ids, how many, how far.

None of these checks is an ``assert``: they hold under ``python -O`` as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits import packed_codes

# Distances are kept in 16 bits, and a code this long is no longer a short one.
MOST_BITS = 32_760


def require_n_bits(n_bits: Any) -> int:
    """The number of bits, refused unless it is an integer from 1 to `MOST_BITS`."""
    if isinstance(n_bits, bool) or not isinstance(n_bits, int | np.integer) or not 1 <= n_bits <= MOST_BITS:
        raise ValueError(f"n_bits must be an integer from 1 to {MOST_BITS}, got {n_bits!r}")
    return int(n_bits)


def checked_codes(codes: Any, n_bits: int, name: str = "codes") -> NDArray[np.uint8]:
    """Packed codes of ``n_bits`` bits, C-contiguous; wrong width, dtype or pad bits are refused."""
    return np.ascontiguousarray(packed_codes(codes, name, n_bits))


def checked_ids(ids: Any, n: int | None = None) -> NDArray[np.int64]:
    """Ids as int64, refused unless they are distinct integers of at least 0 (``n`` of them, where given)."""
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


def require_next_id(value: Any) -> int:
    """The id that the next code gets, refused unless it is an integer from 0 to 2**63."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 2**63:
        raise ValueError(f"next_id must be an integer from 0 to 2**63, got {value!r}")
    return value


def require_k(k: Any, n: int) -> int:
    """The number of neighbours, refused unless it is an integer from 1 to the n items that there are."""
    if n == 0:
        raise ValueError("there is nothing to search: no code has been added")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n:
        raise ValueError(f"k must be an integer from 1 to the {n} item(s) that there are to find, got {k!r}")
    return int(k)


def require_radius(radius: Any, n: int) -> int:
    """The radius, refused unless it is an integer of at least 0."""
    if n == 0:
        raise ValueError("there is nothing to search: no code has been added")
    if isinstance(radius, bool) or not isinstance(radius, int | np.integer) or radius < 0:
        raise ValueError(f"radius must be an integer of at least 0, got {radius!r}")
    return int(radius)
