"""Numbers without rounding: floats rounded to the safe side, and A in integers.

With a penalty of 1e12 beside terms of size 1, float64 cannot tell one xᵀAx from the next. An `ExactForm` is A = N · 2^e
with Python integers N. For the operator of a `Problem`, N comes from the caller's coefficients, so it is exact even
where the float64 entries of A are rounded sums of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.bqp.proof.check import IntArray, exact_integers
from hashlearn.core.arrays import FloatArray

Entries = tuple[NDArray[Any], NDArray[Any], IntArray, int]  # i, j, integers, and the exponent of their unit


def below(number: float) -> float:
    """The largest float64 that is smaller than ``number``."""
    return math.nextafter(number, -math.inf)


def float_at_most(exact: Fraction) -> float:
    """The largest float64 that is not above ``exact``."""
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else below(nearest)


def float_at_least(exact: Fraction) -> float:
    """The smallest float64 that is not below ``exact``."""
    return -float_at_most(-exact)


def sum_below(numbers: FloatArray) -> float:
    """A float64 that is not above the exact sum."""
    return below(math.fsum(numbers))


class ExactForm:
    """A = N · 2^exponent, made when it is needed.

    ``make()`` returns i, j, the integers and the exponent; entries of one place add up. ``zero`` is what the
    caller's objective adds to xᵀAx, in the units of A: gaps are measured against xᵀAx + zero. The float64 operator of
    the same problem has other values by ``rounding`` at most.
    """

    def __init__(
        self, n: int, make: Callable[[], Entries], zero: Fraction = Fraction(0), rounding: float = 0.0
    ) -> None:
        self.n, self.make, self.zero, self.rounding = n, make, zero, rounding

    @classmethod
    def of_floats(cls, A: Any) -> ExactForm:
        """The form of the float64 entries of an array, or of a scipy.sparse matrix."""
        return cls(A.shape[0], partial(_of_floats, A))

    @cached_property
    def entries(self) -> Entries:
        """i, j, the integers there, and the exponent of their unit."""
        return self.make()

    @property
    def exponent(self) -> int:
        """A = N · 2^exponent."""
        return self.entries[3]

    @cached_property
    def N(self) -> IntArray:
        """The matrix of Python integers."""
        i, j, numbers, _ = self.entries
        N = np.zeros((self.n, self.n), dtype=object)
        np.add.at(N, (i, j), numbers)
        return N

    def value(self, x: FloatArray) -> Fraction:
        """xᵀAx.

        >>> ExactForm.of_floats(np.array([[0.0, 1e20], [1e20, 0.5]])).value(np.array([1.0, -1.0]))
        Fraction(-399999999999999999999, 2)
        """
        i, j, numbers, exponent = self.entries
        agree = x[i] * x[j] > 0.0
        return Fraction(2) ** exponent * (int(numbers[agree].sum()) - int(numbers[~agree].sum()))

    def scaled(self, exponent: int) -> ExactForm:
        """2^exponent · A."""
        factor = Fraction(2) ** exponent
        make = lambda: (*self.entries[:3], self.exponent + exponent)  # noqa: E731
        return ExactForm(self.n, make, self.zero * factor, self.rounding * float(factor))

    def contracted(self, columns: NDArray[Any], signs: FloatArray, slack: float) -> ExactForm:
        """The form in variables z with x_i = signs_i · z_columns(i); ``slack`` is what rounding did to their floats."""

        def entries() -> Entries:
            i, j, numbers, exponent = self.entries
            return columns[i], columns[j], numbers * (signs[i] * signs[j]).astype(np.int64).astype(object), exponent

        return ExactForm(int(columns.max()) + 1, entries, self.zero, self.rounding + 2.0 * slack)


def _of_floats(A: Any) -> Entries:
    coo = sp.coo_array(A)
    return *coo.coords, *exact_integers(coo.data)
