"""``"linear_ridge"``: least squares on the codes ±1, all bits in one Cholesky solve. O(n · n_features²), one pass.

All that the fit needs of the rows is their mean, their scatter and their products with the codes, which add up over
blocks: `hashlearn.distributed` fits the same functions on rows that no machine holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import one_blas_thread, sum_row_blocks
from hashlearn.hash_functions.base import STAGE, training_pair
from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.distinct_bits import DistinctBits, distinct_bits
from hashlearn.hash_functions.linear import LinearMargins

DEFAULT_ALPHA = 1e-4


@dataclass(frozen=True)
class LinearRidge:
    """Minimise Σ (y − w·x − b)² + alpha · s ‖w‖², with s the mean over features of their summed squares about the mean.

    Sparse X is made dense in blocks of rows.

    Parameters
    ----------
    alpha : weight of ‖w‖², free of units
    """

    alpha: float = DEFAULT_ALPHA

    name: ClassVar[str] = "linear_ridge"
    accepts_sparse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha")

    def fit(
        self,
        X: Rows,
        codes: NDArray[np.int8],
        rng: np.random.Generator,
        n_jobs: int | None = None,
        progress: ProgressCallback | None = None,
    ) -> LinearMargins:
        """Learn all bits; see `HashFunction.fit`. There is one solve, and nothing is random."""
        X, codes = training_pair(X, codes)
        bits = distinct_bits(codes)
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        n, d = X.shape

        def sums_of(first: int, last: int) -> FloatArray:
            block = X[first:last]
            rows = (block.toarray() if sp.issparse(block) else block).astype(np.float64) - mean
            return np.hstack([rows.T @ rows, rows.T @ codes[first:last][:, bits.columns].astype(np.float64)])

        with one_blas_thread():
            sums = sum_row_blocks(sums_of, n, d)
        means = codes[:, bits.columns].mean(axis=0, dtype=np.float64)
        tell(progress, STAGE, bits.n_distinct, bits.n_distinct)
        return ridge_margins(mean, sums[:, :d], sums[:, d:], means, bits, self.alpha)


def ridge_margins(
    mean: FloatArray, scatter: FloatArray, moments: FloatArray, bit_means: FloatArray, bits: DistinctBits, alpha: float
) -> LinearMargins:
    """The fitted functions from Σ (x − mean)(x − mean)ᵀ and Σ (x − mean) yᵀ, the latter of the distinct bits alone."""
    # Features that all rows share have no scatter, and 1e-300 keeps the matrix regular where none has any.
    penalty = max(alpha * float(np.trace(scatter)) / len(scatter), 1e-300)
    with one_blas_thread():
        factor = cho_factor(scatter + penalty * np.eye(len(scatter)), lower=True, check_finite=False)
        weights = cho_solve(factor, moments, check_finite=False)
    intercepts = bit_means - mean @ weights
    return LinearMargins(weights, intercepts, bits, f"linear ridge, alpha={alpha:.4g}, {bits.describe()}")
