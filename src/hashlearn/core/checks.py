"""Checks of arguments: each error names the argument, what was wrong with it, and what would be right."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.sparse_parts import require_compressed

Matrix = TypeVar("Matrix", NDArray[np.float64], sp.csr_array)

# Squares and n-fold sums of entries up to this size stay finite in float64.
LARGEST_ENTRY = 1e120
# Features: squares of entries up to this size, and sums of them, stay finite in float32 too. The same for arrays,
# tensors, files and blocks of rows.
LARGEST_FEATURE = 1e16
# Asymmetry below this fraction of the largest entry counts as rounding, and A is replaced by its symmetric part.
SYMMETRY_TOLERANCE = 1e-10


def finite_float64(values: Any, name: str, *, ndim: int, may_be_empty: bool = False) -> NDArray[np.float64]:
    """``values`` as a float64 array of ``ndim`` dimensions, refused if complex, not numeric, not finite or empty."""
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
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
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
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n:
        raise ValueError(f"{name} must be an integer from 1 to the {n} item(s) that there are to find, got {k!r}")
    return int(k)


def require_radius(radius: Any) -> int:
    """A Hamming radius as a Python int, refused unless it is an integer of at least 0."""
    return whole_number(radius, "radius", least=0)


def positive(value: Any, name: str) -> None:
    """Refuse a hyper-parameter that is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
