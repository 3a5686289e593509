"""Rounding to the safe side, bounds of constant problems, and exact scaling."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hashlearn.bqp.operators import Operator
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.checks import LARGEST_ENTRY
from hashlearn.core.thresholds import LARGEST_TREE

# Problems of other sizes are scaled by a power of two first.
SAFE_SIZES = (1e-60, 1e60)
# Binary exponents of the largest entry: values below lose digits, values above may overflow.
LEAST_EXPONENT, LARGEST_EXPONENT = -960, 900


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


def constant_bound(A: Operator) -> float:
    """A bound for a problem in which no signs are better than others: one variable, or products that are all 0."""
    if A.n == 1:
        value, error = A.value(A.rows.ones(1)), A.value_error()
        return below(value - error) if error > 0.0 else value
    if A.is_low_rank and A.n <= LARGEST_TREE and A.rows.on_host:
        # Entries whose parts cancel are far below their magnitudes.
        total = float(np.abs(A.toarray()).sum() + A.entry_error().sum())
    else:
        total = A.total_magnitude() + A.value_error()
    return below(-(1.0 + A.n * EPS) * total) if total > 0.0 else 0.0


def leveled(A: Operator) -> tuple[Operator, float, float]:
    """``(A', unit, scale of A')`` with A = unit · A' exactly, and A' of a size at which nothing over- or underflows.

    A is returned as it is, with unit 1, unless it is very large or very small. Only powers of two divide it.
    """
    with np.errstate(all="ignore"):
        size = A.scale()
    if SAFE_SIZES[0] < size < SAFE_SIZES[1]:
        return A, 1.0, size
    exponent = A.exponent()
    if exponent is None:
        return A, 1.0, 0.0
    limit = LARGEST_EXPONENT - 2 * A.n.bit_length()
    if not LEAST_EXPONENT <= exponent <= limit:
        exponents = exponent, LEAST_EXPONENT, limit
        shown, least, most = (f"1e{round(e * math.log10(2.0)):+d}" for e in exponents)
        raise ValueError(
            f"A has entries of size {shown}, but values are computed from {least} to {LARGEST_ENTRY:.0e}, and to "
            f"{most} for products of low-rank factors; multiply A by a constant first"
        )
    divided = A.scaled_by_power(-exponent)
    return divided, math.ldexp(1.0, exponent), divided.scale()
