"""RBF kernels against anchors, a few of the training rows: the features of KSH, SDH and BRE.

The centered values of all rows are stored, an n × n_anchors array. Products are computed by blocks of rows on all cores
and added in block order, so the number of threads changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import sum_row_blocks
from hashlearn.hash_functions import KernelExpansion, every_bit
from hashlearn.hash_functions.kernels import RBFPoints, check_gamma, choose_gamma
from hashlearn.linalg.gram import product, products

KERNEL_BLOCK = 512


def draw_anchors(n: int, n_anchors: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``n_anchors`` different rows (all, if there are fewer), in ascending order."""
    return np.sort(rng.choice(n, min(n_anchors, n), replace=False)).astype(np.intp)


def anchor_gamma(gamma: float | str, X: Any, rng: np.random.Generator) -> tuple[float, str]:
    """γ and its source in words. "mean" is 1 / (2 · mean squared distance between rows), the rule of KSH; other rules
    are those of `hash_functions.kernels`.

    >>> anchor_gamma("mean", np.array([[0.0], [2.0]]), np.random.default_rng(0))
    (0.25, 'mean rule')
    """
    if gamma != "mean":
        check_gamma(gamma)
        return choose_gamma(gamma, X, rng)
    distance = 2.0 * _mean_square_about_mean(X)  # the mean of ‖x − x'‖² over all pairs
    with np.errstate(over="ignore", divide="ignore"):
        value = float(0.5 / np.float64(distance))
    return (value, "mean rule") if 0.0 < value < np.inf else (1.0, "mean rule, all rows equal")


class AnchorKernel:
    """k(x)_j = exp(−γ‖x − a_j‖²) minus its mean over the rows, for anchors a_j = X[index[j]]."""

    def __init__(self, X: Any, index: NDArray[np.intp], gamma: float) -> None:
        self.anchors, self.gamma = X[index], gamma
        self.n, self.m = X.shape[0], len(index)
        points = RBFPoints(self.anchors, gamma)
        self.values = np.empty((self.n, self.m))

        def fill(first: int, last: int) -> FloatArray:
            for a in range(first, last, KERNEL_BLOCK):
                b = min(a + KERNEL_BLOCK, last)
                self.values[a:b] = points.kernel(X[a:b])
            return self.values[first:last].sum(axis=0)

        self.mean = sum_row_blocks(fill, self.n, self.m) / self.n
        self.values -= self.mean

    def project(self, coefficients: FloatArray) -> FloatArray:
        """K @ coefficients, for one column (m,) or several (m, k)."""
        return product(self.values, coefficients)

    def moment(self, rows: FloatArray) -> FloatArray:
        """Kᵀ @ rows, for rows (n,) or (n, k)."""
        return products(self.values, rows)

    def gram(self) -> FloatArray:
        """The Gram matrix KᵀK of the features."""
        return products(self.values)

    def functions(self, coefficients: FloatArray, intercepts: FloatArray, description: str) -> KernelExpansion:
        """Margins k(x) @ coefficients + intercepts."""
        offsets = intercepts - self.mean @ coefficients
        bits = every_bit(coefficients.shape[1])
        return KernelExpansion(self.anchors, self.gamma, coefficients, offsets, bits, description)


def _mean_square_about_mean(X: Any) -> float:
    """Mean of ‖x − mean‖² over the rows."""
    if sp.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        return max(float(np.square(X.data, dtype=np.float64).sum()) / X.shape[0] - float(mean @ mean), 0.0)
    return float(X.var(axis=0, dtype=np.float64).sum())
