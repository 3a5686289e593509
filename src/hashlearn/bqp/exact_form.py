"""A in integers: values xᵀAx and the optimum of few variables without rounding.

With a penalty of 1e12 beside terms of size 1, float64 cannot tell one xᵀAx from the next. Here A = N · 2^e with Python
integers N. For the operator of a `Problem`, N comes from the caller's coefficients, so it is exact even where the
float64 entries of A are rounded sums of them.

Enumeration cuts the integers into limbs of 40 bits. The sums of each limb fit into int64, so it is exact for numbers of
any range. Cost: O(2ⁿ n) for each limb, that is about a second at n = 24 with three limbs.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.proof.check import IntArray, exact_integers
from hashlearn.core.arrays import FloatArray

LIMB = 40  # bits; sums of 4 · 24² such numbers stay far below 2⁶³
STEPS_PER_PIECE = 1 << 19  # Gray code steps between two checks of the time

Entries = tuple[NDArray[Any], NDArray[Any], IntArray, int]  # i, j, integers, and the exponent of their unit


class ExactForm:
    """A = N · 2^exponent, made when it is needed.

    ``make()`` returns i, j, the integers and the exponent; entries of one place add up. ``zero`` is what the
    caller's objective adds to xᵀAx, in the units of A: gaps are measured against xᵀAx + zero. The float64 operator of
    the same problem has other values by ``rounding`` at most.
    """

    def __init__(
        self, n: int, make: Callable[[], Entries], zero: Fraction = Fraction(0), rounding: float = 0.0
    ) -> None:
        self.n, self.zero, self.rounding = n, zero, rounding
        self.make = make

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
        """xᵀAx."""
        i, j, numbers, exponent = self.entries
        agree = x[i] * x[j] > 0.0
        return Fraction(2) ** exponent * (int(numbers[agree].sum()) - int(numbers[~agree].sum()))

    def scaled(self, exponent: int) -> ExactForm:
        """2^exponent · A."""
        factor = Fraction(2) ** exponent

        def entries() -> Entries:
            i, j, numbers, own = self.entries
            return i, j, numbers, own + exponent

        return ExactForm(self.n, entries, self.zero * factor, self.rounding * float(factor))

    def contracted(self, columns: NDArray[Any], signs: FloatArray, slack: float) -> ExactForm:
        """The form in variables z with x_i = signs_i · z_columns(i); ``slack`` is what rounding did to their floats."""

        def entries() -> Entries:
            i, j, numbers, exponent = self.entries
            return columns[i], columns[j], numbers * (signs[i] * signs[j]).astype(np.int64).astype(object), exponent

        return ExactForm(int(columns.max()) + 1, entries, self.zero, self.rounding + 2.0 * slack)

    def enumerated(self, between: Callable[[float], Any] | None = None) -> tuple[FloatArray, Fraction]:
        """The signs of smallest xᵀAx and that value.

        >>> form = ExactForm.of_floats(np.array([[0.0, 1e20], [1e20, 0.1]]))
        >>> x, value = form.enumerated()
        >>> x, value + 2 * 10**20 == Fraction(0.1)
        (array([ 1., -1.]), True)
        """
        limbs = _limbs(self.N)
        total = 1 << (self.n - 1)
        x, best_x = np.ones(self.n), np.ones(self.n)
        products = limbs.sum(axis=2)
        value = products.sum(axis=1)
        best = value.copy()
        for first in range(0, total, STEPS_PER_PIECE):
            last = min(total, first + STEPS_PER_PIECE)
            _visit(limbs, x, products, value, best_x, best, first, last)
            if between is not None:
                between(last / total)
        return best_x, self.value(best_x)


def _of_floats(A: Any) -> Entries:
    coo = sp.coo_array(A)
    return *coo.coords, *exact_integers(coo.data)


def _limbs(N: IntArray) -> NDArray[np.int64]:
    """The entries off the diagonal cut into pieces of `LIMB` bits, the lowest first, with the sign of the entry."""
    N = N - np.diag(N.diagonal())
    sizes: IntArray = abs(N)
    signs = np.sign(N).astype(np.int64)
    count = max(1, -(-int(sizes.max()).bit_length() // LIMB))
    return np.array([((sizes >> (LIMB * k)) & ((1 << LIMB) - 1)).astype(np.int64) * signs for k in range(count)])


@njit(cache=True, nogil=True)
def _visit(limbs, x, products, value, best_x, best, first, last):  # type: ignore[no-untyped-def]
    """The points ``first`` to ``last`` of the Gray code; x, products and value are those of ``first``.

    The state is moved on to the point ``last``.
    """
    n_limbs, n = limbs.shape[0], limbs.shape[1]
    for step in range(first, last):
        carry = 0  # of value − best; what is left of it at the top has the sign of the difference
        for k in range(n_limbs):
            carry = (value[k] - best[k] + carry) >> LIMB
        if carry < 0:
            best_x[:] = x
            best[:] = value
        i, rest = 1, step + 1
        while not rest & 1:
            rest >>= 1
            i += 1
        if i >= n:
            break
        sign = 1 if x[i] > 0.0 else -1
        x[i] = -x[i]
        for k in range(n_limbs):
            value[k] -= 4 * sign * products[k, i]
            for j in range(n):
                products[k, j] -= 2 * sign * limbs[k, i, j]
