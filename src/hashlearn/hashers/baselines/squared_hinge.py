"""Linear support vector machines with the squared hinge, for many bits at once and for repeated fits.

For each bit y: min ½‖w‖² + C Σ max(0, 1 − y_i x_iᵀw)². For every bit the curvature is at most I + 2C XᵀX. One Cholesky
factor of it gives a step that lowers the loss of every bit; with momentum a few steps are enough. A step is two
products with X, O(n · n_features · n_bits).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import sum_row_blocks
from hashlearn.linalg.gram import product, products


class SquaredHinge:
    """Fits bits to the rows of X; a column of ones in X gives an intercept."""

    def __init__(self, X: NDArray[Any], C: float) -> None:
        self.X, self.C = X, C
        self._factor = cho_factor(np.eye(X.shape[1]) + 2.0 * C * products(X), overwrite_a=True)

    def margins(self, W: FloatArray) -> NDArray[Any]:
        """X @ W in the dtype of X."""
        return product(self.X, W.astype(self.X.dtype))

    def fit(self, signs: NDArray[np.int8], W: FloatArray, n_steps: int) -> FloatArray:
        """Weights (n_features, n_bits) after ``n_steps`` accelerated steps from W."""
        y = signs.astype(self.X.dtype)
        ahead, momentum = W, 1.0
        for _ in range(n_steps):
            slope = self._gradient(y, ahead)
            moved = ahead - cho_solve(self._factor, slope)
            if float(np.sum(slope * (moved - W))) > 0.0:  # the momentum points uphill: restart it
                momentum = 1.0
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            ahead = moved + (momentum - 1.0) / following * (moved - W)
            W, momentum = moved, following
        return W

    def losses(self, signs: NDArray[np.int8], W: FloatArray) -> FloatArray:
        """The value of the loss for each bit."""
        missing = np.maximum(1.0 - signs * self.margins(W).astype(np.float64), 0.0)
        return 0.5 * (W * W).sum(axis=0) + self.C * (missing * missing).sum(axis=0)

    def _gradient(self, y: NDArray[Any], W: FloatArray) -> FloatArray:
        narrow = W.astype(self.X.dtype)

        def block(a: int, b: int) -> FloatArray:
            rows, sign = self.X[a:b], y[a:b]
            missing = np.maximum(1.0 - sign * (rows @ narrow), 0.0)
            return (rows.T @ (sign * missing)).astype(np.float64)

        return W - 2.0 * self.C * sum_row_blocks(block, len(y), self.X.shape[1])
