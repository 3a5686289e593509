"""Sums of operators: each sum is one of the four kinds, with the rounding of its entries added up.

Dense plus anything is dense, low rank plus low rank is low rank, and sparse plus low rank stays a pair.
"""

from __future__ import annotations

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
