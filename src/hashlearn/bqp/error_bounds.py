"""Floating point and its errors: sums of operators, the error of a value, rounding to the safe side, exact scaling.

A bound on min xᵀAx is proven only if it allows for the rounding of everything behind it. When the parts of A cancel,
that rounding is large compared with the entries that remain. So every error bound comes from the magnitudes of the
parts, |S| + |P| |W| |P|ᵀ (`Operator.magnitudes`), and never from A itself. Cost: one pass over the parts.

EPS is twice the unit roundoff, so each count of roundings is too large by a factor of two. The bounded problem is that
of A as float64, or of its symmetric part if A is not quite symmetric.

A sum of operators is one of the four kinds, with the rounding of its entries added up. Dense plus anything is dense,
low rank plus low rank is low rank, and sparse plus low rank stays a pair.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp.operators import (
    LARGEST_EXACT,
    Dense,
    LowRank,
    Operator,
    Sparse,
    SparsePlusLowRank,
    require_equal_n,
    split,
    trusted,
)
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


def value_error(A: Operator) -> float:
    """The most by which ``A.value(x)`` can be off, for any signs x."""
    if A.is_exact():
        return 0.0
    if isinstance(A, SparsePlusLowRank):
        return value_error(A.sparse) + value_error(A.low_rank) + EPS * float(A.magnitudes().sum())
    if isinstance(A, LowRank):
        return (2.0 * A.rows.sum_rounding + (A.rank + 4) * EPS) * A.total_magnitude()
    return 2.0 * (A.n + 2) * EPS * float(A.magnitudes().sum()) + float(A.entry_error().sum())


def constant_bound(A: Operator) -> float:
    """A bound for a problem in which no signs are better than others: one variable, or products that are all 0."""
    if A.n == 1:
        value, error = A.value(A.tall.ones(1)), value_error(A)
        return below(value - error) if error > 0.0 else value
    if not isinstance(A, LowRank):
        total = float(A.magnitudes().sum() + A.entry_error().sum())
    elif A.n <= LARGEST_TREE and A.tall.on_host:  # entries whose parts cancel are far below their magnitudes
        total = float(np.abs(A.toarray()).sum() + A.entry_error().sum())
    else:
        total = A.total_magnitude() + value_error(A)
    return below(-(1.0 + A.n * EPS) * total) if total > 0.0 else 0.0


def leveled(A: Operator) -> tuple[Operator, float, float]:
    """``(A', unit, scale of A')`` with A = unit · A' exactly, and A' of a size at which nothing over- or underflows.

    A is returned as it is, with unit 1, unless it is very large or very small. Only powers of two divide it.
    """
    with np.errstate(all="ignore"):
        size = A.scale()
    if SAFE_SIZES[0] < size < SAFE_SIZES[1]:
        return A, 1.0, size
    exponent = _exponent(A)
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
    divided = _divided(A, exponent)
    return divided, math.ldexp(1.0, exponent), divided.scale()


def _exponent(A: Operator) -> int | None:
    """The least e such that no part of an entry is larger than n² · 2^e; None if A = 0."""
    if isinstance(A, SparsePlusLowRank):
        return max((e for e in (_exponent(A.sparse), _exponent(A.low_rank)) if e is not None), default=None)
    if isinstance(A, LowRank):
        sums = A.rows.absolute_sums()
        there = (sums > 0.0) & (A.weights != 0.0)
        exponents = np.frexp(A.weights)[1] + 2 * np.frexp(sums)[1]
        return int(exponents[there].max()) if there.any() else None
    assert isinstance(A, Dense | Sparse)
    entries = A.array if isinstance(A, Dense) else A.matrix.data
    largest = float(np.abs(entries).max(initial=0.0))
    return math.frexp(largest)[1] if largest > 0.0 else None


def _divided(A: Operator, exponent: int) -> Operator:
    """2^−exponent · A."""
    if isinstance(A, SparsePlusLowRank):
        return SparsePlusLowRank(A.sparse.scaled(math.ldexp(1.0, -exponent)), _divided_low_rank(A.low_rank, exponent))
    return _divided_low_rank(A, exponent) if isinstance(A, LowRank) else A.scaled(math.ldexp(1.0, -exponent))


def _divided_low_rank(A: LowRank, exponent: int) -> LowRank:
    """2^−exponent · A, with every column of P brought to size 1; the weights get the remaining factor."""
    columns = np.clip(np.frexp(A.rows.absolute_sums())[1], -1000, 1000)
    rows = A.rows.with_scaled_columns(np.ldexp(1.0, -columns))
    return LowRank.unchecked(rows, np.ldexp(A.weights, 2 * columns - exponent))


def added(left: Operator, right: Operator) -> Operator:
    """left + right, both of the same size."""
    require_equal_n(left, right)
    if isinstance(left, Dense) or isinstance(right, Dense):
        array = left.toarray() + right.toarray()
        return trusted(Dense, array=array, n=left.n, error=_error_of_sum(left, right))
    parts = split(left), split(right)
    sparse = _sparse_sum([part for part, _ in parts if part is not None])
    factors = [factor for _, factor in parts if factor is not None]
    if not factors:
        assert sparse is not None
        return sparse
    P = np.hstack([factor.rows.to_host() for factor in factors])
    low_rank = LowRank.unchecked(P, np.concatenate([factor.weights for factor in factors]))
    return low_rank if sparse is None else SparsePlusLowRank(sparse, low_rank)


def _sparse_sum(parts: list[Sparse]) -> Sparse | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    first, second = parts
    matrix = sp.csr_array(first.matrix + second.matrix)
    return trusted(Sparse, matrix=matrix, n=first.n, error=_error_of_sum(first, second))


def _error_of_sum(left: Operator, right: Operator) -> FloatArray | float:
    """`Operator.error` of the sum as one array or one sparse matrix."""
    magnitudes = left.magnitudes() + right.magnitudes()
    if left.is_exact() and right.is_exact() and magnitudes.sum() < LARGEST_EXACT:
        return 0.0
    return left.entry_error() + right.entry_error() + EPS * magnitudes
