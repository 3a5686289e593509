"""Checks of arrays that come from a file: a wrong shape or index there must be an error, never a wild read later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def stored_array(state: dict[str, Any], name: str, shape: Sequence[int | None], kind: str = "f") -> NDArray[Any]:
    """``state[name]``, refused unless it is an array of that shape (None: any length) and kind ("f" or "i").

    >>> stored_array({"weights": np.ones((3, 2))}, "weights", (3, None)).shape
    (3, 2)
    >>> stored_array({"weights": np.ones((3, 2))}, "weights", (4, None))
    Traceback (most recent call last):
        ...
    ValueError: weights must have shape (4, any), got (3, 2)
    """
    array = state.get(name)
    if not isinstance(array, np.ndarray) or array.dtype.kind != kind:
        what = "missing" if array is None else f"{type(array).__name__} {getattr(array, 'dtype', '')}".strip()
        raise ValueError(f"{name} must be an array of {'real numbers' if kind == 'f' else 'integers'}, got {what}")
    if array.ndim != len(shape) or any(want not in (None, got) for want, got in zip(shape, array.shape, strict=True)):
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} must have shape ({wanted}), got {array.shape}")
    return array


def require_range(array: NDArray[Any], name: str, lowest: int, highest: int) -> None:
    """Integers that index something must lie in it."""
    if array.size and not (lowest <= int(array.min()) and int(array.max()) <= highest):
        raise ValueError(f"{name} must lie from {lowest} to {highest}, got {array.min()} to {array.max()}")


def stored_number(state: dict[str, Any], name: str, least: float = 0.0) -> float:
    """``state[name]`` as a finite float of at least ``least``."""
    value = state.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not least <= value < np.inf:
        raise ValueError(f"{name} must be a finite number of at least {least:g}, got {value!r}")
    return float(value)
