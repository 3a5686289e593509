"""Checks of arguments: each error names the argument, what was wrong with it, and what would be right.

scipy's kernels use the parts of sparse arrays as memory offsets without checking their range. Its own
``check_format(full_check=True)`` skips the inside of ``indptr`` if the last entry is 0, and compares differences that
can wrap around. So every reader of sparse arrays calls `checked_csr` or its parts. Cost: O(number of entries).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Matrix = TypeVar("Matrix", NDArray[np.float64], sp.csr_array)

# Squares and n-fold sums of entries up to this size stay finite in float64.
LARGEST_ENTRY = 1e120
# Features may have entries up to this size, the same for arrays, tensors, files and blocks of rows.
LARGEST_FEATURE = 1e18
# Squares of entries up to this size, and sums of them, stay finite in float32.
LARGEST_SINGLE = 1e15
# Asymmetry below this fraction of the largest entry counts as rounding, and A is replaced by its symmetric part.
SYMMETRY_TOLERANCE = 1e-10
LARGEST_SIDE = 2**63 - 1  # of a sparse array


def numeric_array(values: Any, name: str) -> NDArray[Any]:
    """``values`` as an array of integers or floats, refused if masked, ragged, complex or not numeric."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; fill them first, for example by {name}.filled(0.0)")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if np.iscomplexobj(array):
        raise TypeError(f"{name} must be real, got complex entries ({array.dtype}); pass {name}.real if that is meant")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers, got dtype {array.dtype}")
    return array


def finite_float64(values: Any, name: str, *, ndim: int, may_be_empty: bool = False) -> NDArray[np.float64]:
    """``values`` as a float64 array of ``ndim`` dimensions, refused if complex, not numeric, not finite or empty."""
    array = numeric_array(values, name)
    if array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}")
    if array.size == 0 and not may_be_empty:
        raise ValueError(f"{name} is empty (shape {array.shape}); at least one entry is needed")
    array = array.astype(np.float64, copy=False)
    if array.size and not np.isfinite(largest := max(array.max(), -array.min())):
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at index {where if ndim > 1 else where[0]}")
    if array.size and largest > LARGEST_ENTRY:
        raise ValueError(f"{name} has an entry of size {largest:.3g}; scale it below {LARGEST_ENTRY:.0e} first")
    return array


def require_whole(A: Any, name: str) -> None:
    """Refuse a compressed sparse matrix whose indices point outside it; scipy would read and write there."""
    if A.format in ("csr", "csc"):
        n_major, n_minor = A.shape if A.format == "csr" else A.shape[::-1]
        try:
            require_compressed(A.indices, A.indptr, n_major, n_minor)
        except ValueError as error:
            raise ValueError(f"{name} is a damaged sparse matrix: its {error}") from None


def require_symmetric(A: Matrix) -> Matrix:
    """``A`` itself if it is symmetric, its symmetric part if it is symmetric up to rounding, else an error."""
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"A must be square, got shape {A.shape}")
    if A.shape[0] == 0:
        raise ValueError("A is empty (shape (0, 0)); at least one variable is needed")
    difference = abs(A - A.T)
    worst = difference.max()
    if worst == 0.0:
        return A
    scale = abs(A).max()
    if worst > SYMMETRY_TOLERANCE * scale:
        i, j = (int(q) for q in np.unravel_index(int(difference.argmax()), A.shape))
        raise ValueError(
            f"A must be symmetric, but A[{i}, {j}] = {A[i, j]:.6g} and A[{j}, {i}] = {A[j, i]:.6g}; "
            "xᵀAx is the same for (A + A.T) / 2, pass that if it is what you mean"
        )
    half = 0.5 * (A + A.T)
    return sp.csr_array(half) if sp.issparse(half) else half


def signs(x: Any, n: int, name: str = "x0") -> NDArray[np.float64]:
    """A start of n signs, refused unless every entry is −1 or +1."""
    array = finite_float64(x, name, ndim=1)
    if array.shape[0] != n:
        raise ValueError(f"{name} must have {n} entries, one for each variable, got {array.shape[0]}")
    if not np.all(np.abs(array) == 1.0):
        worst = int(np.argmax(np.abs(np.abs(array) - 1.0)))
        raise ValueError(f"{name} must hold only -1 and +1, got {array[worst]:.6g} at index {worst}")
    return array.copy()


def generator(random_state: Any) -> np.random.Generator:
    """A `numpy.random.Generator` from None, an int, a SeedSequence, a RandomState or a Generator (used as it is)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be None, a non-negative integer or a numpy Generator, got {random_state!r}"
        ) from None


def whole_number(value: Any, name: str, *, least: int, most: int | None = None) -> int:
    """``value`` as a Python int, refused unless it is an integer from ``least`` to ``most`` (None: no upper limit).

    >>> whole_number(True, "n_bits", least=1, most=64)
    Traceback (most recent call last):
        ...
    ValueError: n_bits must be an integer from 1 to 64, got True
    """
    if not _is_number(value, int | np.integer) or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {limits}, got {value!r}")
    return int(value)


def require_k(k: Any, n: int, name: str = "k") -> int:
    """How many items to retrieve, as a Python int, refused unless it is from 1 to the ``n`` items that there are.

    >>> require_k(6, 5)
    Traceback (most recent call last):
        ...
    ValueError: k must be an integer from 1 to the 5 item(s) that there are to find, got 6
    """
    if n == 0:
        raise ValueError("there is nothing to search: no code has been added")
    if not _is_number(k, int | np.integer) or not 1 <= k <= n:
        raise ValueError(f"{name} must be an integer from 1 to the {n} item(s) that there are to find, got {k!r}")
    return int(k)


def require_radius(radius: Any) -> int:
    """A Hamming radius as a Python int, refused unless it is an integer of at least 0."""
    return whole_number(radius, "radius", least=0)


def positive(value: Any, name: str, *, or_zero: bool = False) -> None:
    """Refuse a hyper-parameter that is not a positive finite number, nor zero with ``or_zero``."""
    if not _is_number(value, int | float | np.number) or not 0 <= value < np.inf or (value == 0 and not or_zero):
        raise ValueError(f"{name} must be a positive number{' or zero' if or_zero else ''}, got {value!r}")


def require_share(value: Any, name: str, *, or_one: bool = False) -> None:
    """Refuse what is not a number above 0 and below 1, nor 1 with ``or_one``.

    >>> require_share(1.0, "missed")
    Traceback (most recent call last):
        ...
    ValueError: missed must be a number above 0 and below 1, got 1.0
    """
    if not _is_number(value, int | float | np.number) or not 0.0 < value <= 1.0 or (value == 1.0 and not or_one):
        limits = "above 0 and at most 1" if or_one else "above 0 and below 1"
        raise ValueError(f"{name} must be a number {limits}, got {value!r}")


def _is_number(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


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
    n_rows, n_columns = sides = list(shape) if len(shape) == 2 else [-1, -1]
    if not all(type(side) is int and 0 <= side <= LARGEST_SIDE for side in sides):
        raise ValueError(f"shape must be two whole numbers of at least 0, got {shape!r}")
    for name, numbers in (("indices", indices), ("indptr", indptr)):
        if not isinstance(numbers, np.ndarray) or numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            what = f"{numbers.dtype} of shape {numbers.shape}" if isinstance(numbers, np.ndarray) else repr(numbers)
            raise ValueError(f"{name} must be integers in one dimension, got {what}")
    if not isinstance(data, np.ndarray) or data.shape != indices.shape or data.dtype.kind not in "fiub":
        raise ValueError(f"data must hold {len(indices)} numbers, one for each of the indices")
    require_compressed(indices, indptr, n_rows, n_columns)
    # scipy's kernels know two dtypes of integers; the range is checked by now.
    known = [part if part.dtype in (np.int32, np.int64) else part.astype(np.int64) for part in (indices, indptr)]
    return sp.csr_array((data, *known), shape=(n_rows, n_columns))


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
