"""Numbers of a caller, taken over without rounding: checks, and integers behind floats that are multiples of 2^e.

Bounds are proven for the numbers that the caller gave. So a number that float64 cannot hold exactly is refused.
All checks are O(number of entries).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import numeric_array

IntArray: TypeAlias = NDArray[np.int64]
# Sums of integers up to this size are exact in float64, also four times as large.
LARGEST_SUM = 2**50
# Most lists of fractions show themselves in this many entries.
FIRST = 1000


def exact_float(value: Any, name: str) -> float:
    """A number as float64, refused if it is no real number, not finite, or changed by the conversion.

    >>> exact_float(2**53 + 1, "the weight of edge (0, 1)")
    Traceback (most recent call last):
        ...
    ValueError: the weight of edge (0, 1) is 9007199254740993, which float64 cannot hold exactly; round it first
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, complex | np.complexfloating):
        raise TypeError(f"{name} must be a real number, got {value!r}; pass its real part if that is meant")
    if not isinstance(value, numbers.Real | Decimal | np.bool):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} is too large for float64; scale the problem first") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}")
    if number != value:
        raise ValueError(f"{name} is {value!s}, which float64 cannot hold exactly; round it first")
    return number


def exact_floats(values: Any, name: str, at: Callable[[int], str] | None = None) -> FloatArray:
    """An array of numbers as float64, in its shape, refused as by `exact_float`; ``at`` names its k-th entry."""
    array = numeric_array(values, name)
    with np.errstate(over="ignore"):
        floats = array.astype(np.float64)
    bad = ~np.isfinite(floats)
    if array.dtype.kind == "f":
        bad |= floats != array
    elif np.abs(floats).max(initial=0.0) >= 2.0**53:
        bad |= floats.astype(object) != array.astype(object)  # compares integers of any size
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        where = at(k) if at else f"{name}[{', '.join(str(int(q)) for q in np.unravel_index(k, array.shape))}]"
        exact_float(array.flat[k], where)
        raise ValueError(f"{where} is {array.flat[k]}, which float64 cannot hold exactly; round it first")
    return floats


def require_summable(w: FloatArray, offset: float, what: str) -> None:
    """Refuse numbers whose sum would overflow."""
    largest = np.abs(w).max(initial=abs(offset))
    if largest and math.log2(largest) + math.log2(len(w) + 1) > 1018:
        raise ValueError(f"{what} up to {largest:.3g} add up to more than float64 holds; scale the problem first")


def common_exponent(w: FloatArray) -> int | None:
    """The largest e such that all w are integers times 2^e, if their absolute sum is then small enough; else None.

    >>> common_exponent(np.array([0.25, 3.0])), common_exponent(np.array([0.1]))
    (-2, None)
    """
    w = w[w != 0.0]
    if not len(w):
        return 0
    if len(w) > FIRST and common_exponent(w[:FIRST]) is None:
        return None
    mantissas, exponents = np.frexp(w)
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    trailing = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    lowest = int((exponents - 53 + trailing).min())
    if int(exponents.max()) - lowest > 50 or np.abs(np.ldexp(w, -lowest)).sum() >= LARGEST_SUM:
        return None
    return lowest


def sum_of(parts: Iterable[float]) -> Fraction:
    """The sum of floats, without rounding.

    >>> sum_of([1e300, 0.5, -1e300])
    Fraction(1, 2)
    """
    rest, total = list(parts), Fraction(0)
    while part := math.fsum(rest):  # the sum, rounded once; what it leaves is summed next
        total += Fraction(part)
        rest.append(-part)
    return total
