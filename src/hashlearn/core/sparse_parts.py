"""Checks the parts of sparse arrays from files before scipy sees them.

scipy's kernels use these numbers as memory offsets without checking their range. Its own
``check_format(full_check=True)`` skips the inside of ``indptr`` if the last entry is 0, and compares differences that
can wrap around. Every reader of sparse arrays therefore calls these functions. Cost: O(number of entries).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

LARGEST_SIDE = 2**63 - 1


def checked_csr(data: Any, indices: Any, indptr: Any, shape: Sequence[Any]) -> sp.csr_array:
    """The CSR array with these parts, or a ValueError that names the part that is wrong.

    >>> checked_csr(np.ones(2), np.array([0, 1]), np.array([0, 1, 2]), (2, 2)).toarray()
    array([[1., 0.],
           [0., 1.]])
    >>> checked_csr(np.ones(2), np.array([0, 2]), np.array([0, 1, 2]), (2, 2))
    Traceback (most recent call last):
        ...
    ValueError: indices must lie from 0 to 1, got 0 to 2
    """
    n_rows, n_columns = checked_shape(shape)
    require_integers(indices, "indices")
    require_integers(indptr, "indptr")
    if not isinstance(data, np.ndarray) or data.shape != indices.shape or data.dtype.kind not in "fiub":
        raise ValueError(f"data must hold {len(indices)} numbers, one for each of the indices")
    require_compressed(indices, indptr, n_rows, n_columns)
    parts = (data, plain_integers(indices), plain_integers(indptr))
    return sp.csr_array(parts, shape=(n_rows, n_columns))


def require_compressed(indices: NDArray[Any], indptr: NDArray[Any], n_major: int, n_minor: int) -> None:
    """Check ``indices`` and ``indptr`` of an array with n_major rows of n_minor columns (CSC: columns of rows)."""
    if len(indptr) != n_major + 1:
        raise ValueError(f"indptr must have {n_major + 1} entries, got {len(indptr)}")
    first, last = int(indptr[0]), int(indptr[-1])
    if first != 0 or last != len(indices):
        raise ValueError(f"indptr must go from 0 to {len(indices)}, got {first} to {last}")
    if (indptr[1:] < indptr[:-1]).any():  # a comparison cannot wrap around as a difference can
        raise ValueError("indptr must not decrease")
    require_within(indices, "indices", n_minor)


def require_within(numbers: NDArray[Any], name: str, count: int) -> None:
    """Refuse numbers that do not lie from 0 to count − 1."""
    if numbers.size and not (int(numbers.min()) >= 0 and int(numbers.max()) < count):
        raise ValueError(f"{name} must lie from 0 to {count - 1}, got {numbers.min()} to {numbers.max()}")


def require_integers(numbers: Any, name: str) -> None:
    """Refuse what is not an array of integers with one dimension."""
    if not isinstance(numbers, np.ndarray) or numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        what = f"{numbers.dtype} of shape {numbers.shape}" if isinstance(numbers, np.ndarray) else repr(numbers)
        raise ValueError(f"{name} must be integers in one dimension, got {what}")


def plain_integers(numbers: NDArray[Any]) -> NDArray[Any]:
    """Integers in a dtype that scipy's kernels know; call it after the range is checked."""
    return numbers if numbers.dtype in (np.int32, np.int64) else numbers.astype(np.int64)


def checked_shape(shape: Sequence[Any]) -> tuple[int, int]:
    """The number of rows and of columns, refused unless they are Python integers of at least 0."""
    sides = list(shape)
    if len(sides) != 2 or not all(type(side) is int and 0 <= side <= LARGEST_SIDE for side in sides):
        raise ValueError(f"shape must be two whole numbers of at least 0, got {sides!r}")
    return sides[0], sides[1]
