"""Checks of arrays that come from a file: what is wrong there must be an error, never a wild read or a NaN later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.threads import map_row_blocks

REAL = (np.float32, np.float64)  # what the evaluators know
SMALLEST_SCALE = float(np.finfo(np.float64).tiny)


def stored_array(
    state: dict[str, Any], name: str, shape: Sequence[int | None], kind: str = "f", *, may_be_infinite: bool = False
) -> NDArray[Any]:
    """``state[name]``, refused unless it is an array of that shape (None: any length) and kind ("f" or "i").

    Kind "f" is float32 or float64, and every entry must be finite; ``may_be_infinite`` allows +inf as well.

    >>> stored_array({"weights": np.ones((3, 2))}, "weights", (3, None)).shape
    (3, 2)
    >>> stored_array({"weights": np.ones((3, 2))}, "weights", (4, None))
    Traceback (most recent call last):
        ...
    ValueError: weights must have shape (4, any), got (3, 2)
    >>> stored_array({"weights": np.array([1.0, np.nan])}, "weights", (2,))
    Traceback (most recent call last):
        ...
    ValueError: weights must be finite, got NaN or infinity
    """
    array = state.get(name)
    known = isinstance(array, np.ndarray) and (array.dtype.kind == "i" if kind == "i" else array.dtype in REAL)
    if not isinstance(array, np.ndarray) or not known:
        what = "missing" if array is None else f"{type(array).__name__} {getattr(array, 'dtype', '')}".strip()
        wanted = "real numbers, float32 or float64" if kind == "f" else "integers"
        raise ValueError(f"{name} must be an array of {wanted}, got {what}")
    if array.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")
    if kind == "f" and not may_be_infinite and not largest_entry(array) < np.inf:
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if may_be_infinite and array.size and not array.min() > -np.inf:
        raise ValueError(f"{name} must be finite or +inf, got NaN or -inf")
    return array


def require_range(array: NDArray[Any], name: str, lowest: int, highest: int) -> None:
    """Integers that index something must lie in it."""
    if array.size and not (lowest <= int(array.min()) and int(array.max()) <= highest):
        raise ValueError(f"{name} must lie from {lowest} to {highest}, got {array.min()} to {array.max()}")


def stored_number(
    state: dict[str, Any], name: str, least: float = SMALLEST_SCALE, most: float = float(np.finfo(np.float64).max)
) -> float:
    """``state[name]`` as a float from ``least`` to ``most``; by default any positive number that is not subnormal."""
    value = state.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value <= most:
        raise ValueError(f"{name} must be a number from {least:.3g} to {most:.3g}, got {value!r}")
    return float(value)


def largest_entry(entries: NDArray[Any]) -> float:
    """The largest magnitude, NaN if there is one; every entry comes from memory once, on all cores."""
    if entries.size == 0:
        return 0.0
    width = entries.size // len(entries)

    def block(first: int, last: int) -> float:
        part = entries[first:last]
        return float(np.maximum(part.max(), -part.min()))

    return float(np.max(map_row_blocks(block, len(entries), width)))
