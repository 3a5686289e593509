"""``"linear_ridge"``: least squares on the codes ±1, all bits in one Cholesky solve. O(n · n_features²), one pass.

The fit needs only the mean of the rows, their scatter and their products with the codes. These are sums over blocks of
rows, so `hashlearn.distributed` fits the same functions on rows that do not fit into one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive
from hashlearn.core.threads import one_blas_thread, sum_row_blocks
from hashlearn.hash_functions.base import HashFunction, Training
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.linear import LinearMargins
from hashlearn.linalg.gram import column_means

DEFAULT_ALPHA = 1e-4


@dataclass(frozen=True)
class LinearRidge(HashFunction):
    """Minimize Σ (y − w·x − b)² + alpha · s ‖w‖², with s the mean of the scatter's diagonal.

    Sparse X is made dense in blocks of rows.

    Parameters
    ----------
    alpha : weight of ‖w‖², free of units
    """

    alpha: float = DEFAULT_ALPHA

    name: ClassVar[str] = "linear_ridge"

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha")

    def _fit(self, data: Training) -> LinearMargins:
        """There is one solve, and nothing is random."""
        X, codes, bits = data.X, data.codes, data.bits
        mean = column_means(X)
        n, d = X.shape

        def sums_of(first: int, last: int) -> FloatArray:
            block = X[first:last]
            rows = (block.toarray() if sp.issparse(block) else block).astype(np.float64) - mean
            return np.hstack([rows.T @ rows, rows.T @ codes[first:last].astype(np.float64)])

        with one_blas_thread():
            sums = sum_row_blocks(sums_of, n, d)
        data.tell_done()
        return ridge_margins(mean, sums[:, :d], sums[:, d:], codes.mean(axis=0, dtype=np.float64), bits, self.alpha)


def ridge_margins(
    mean: FloatArray, scatter: FloatArray, moments: FloatArray, bit_means: FloatArray, bits: DistinctBits, alpha: float
) -> LinearMargins:
    """The fitted functions from Σ (x − mean)(x − mean)ᵀ and Σ (x − mean) yᵀ, with y the distinct bits."""
    # 1e-300 keeps the matrix regular if all features are constant.
    penalty = max(alpha * float(np.trace(scatter)) / len(scatter), 1e-300)
    with one_blas_thread():
        factor = cho_factor(scatter + penalty * np.eye(len(scatter)), lower=True, check_finite=False)
        weights = cho_solve(factor, moments, check_finite=False)
    intercepts = bit_means - mean @ weights
    return LinearMargins(weights, intercepts, bits, f"linear ridge, alpha={alpha:.4g}, {bits.describe()}")
