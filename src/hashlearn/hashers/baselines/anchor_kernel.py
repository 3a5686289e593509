"""RBF kernels against anchors, a few of the training rows: the features of KSH, SDH and BRE.

The centered values of all rows are stored, an n × n_anchors array. Products are computed by blocks of rows on all cores
and added in block order, so the number of threads changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import sum_row_blocks
from hashlearn.hash_functions import KernelExpansion, every_bit
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.linalg.gram import product, products

KERNEL_BLOCK = 512


def draw_anchors(n: int, n_anchors: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """``n_anchors`` different rows (all, if there are fewer), in ascending order."""
    return np.sort(rng.choice(n, min(n_anchors, n), replace=False)).astype(np.intp)


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

    def gram(self, ridge: float = 0.0) -> FloatArray:
        """The Gram matrix KᵀK of the features, plus ``ridge`` on its diagonal."""
        gram = products(self.values)
        gram[np.diag_indices_from(gram)] += ridge
        return gram

    def functions(self, coefficients: FloatArray, intercepts: FloatArray, method: str, origin: str) -> KernelExpansion:
        """Margins k(x) @ coefficients + intercepts; ``origin`` of γ."""
        offsets = intercepts - self.mean @ coefficients
        title = f"{method}, gamma={self.gamma:.4g} ({origin}), {self.m} anchors"
        return KernelExpansion(self.anchors, self.gamma, coefficients, offsets, every_bit(coefficients.shape[1]), title)
