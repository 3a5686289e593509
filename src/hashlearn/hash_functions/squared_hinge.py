"""Linear support vector machines with the squared hinge, for all bits at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from hashlearn.core.arrays import FloatArray

BlockFunction = Callable[[int, int], FloatArray]


class SquaredHinge:
    """For every bit y: min ½ Σ_j p_j w_j² + ½ Σ_i max(0, 1 − y_i f(x_i))², with f(x) = xᵀw and an intercept.

    The curvature of every bit is at most H = XᵀX + Diag(p), that of ridge regression. One Cholesky factor of H gives
    steps that lower the loss of every bit; the first from 0 is ridge regression itself. With momentum a few steps are
    enough. A step is two products with the rows.

    Parameters
    ----------
    rows : ``rows(first, last)`` are rows of X
    gram : XᵀX for rows with a last entry 1, which belongs to the intercept
    penalties : p, the last one of the intercept
    sum_blocks : the sum of a function of (first, last) over blocks of all rows
    """

    def __init__(
        self,
        rows: Callable[[int, int], NDArray[Any]],
        gram: FloatArray,
        penalties: FloatArray,
        sum_blocks: Callable[[BlockFunction], FloatArray],
    ) -> None:
        self.rows, self.penalties, self.sum_blocks = rows, penalties[:, None], sum_blocks
        self.factor = cho_factor(gram + np.diag(penalties), lower=True, overwrite_a=True)

    def fit(self, codes: NDArray[np.int8], W: FloatArray, n_steps: int, tol: float = 0.0) -> FloatArray:
        """Weights (n_features + 1, n_bits) after ``n_steps`` from W, fewer if one changes them by ``tol`` at most."""
        ahead, momentum = W, 1.0
        for _ in range(n_steps):
            slope = self.penalties * ahead - self.sum_blocks(partial(self._descent, codes, ahead))
            last, W = W, ahead - cho_solve(self.factor, slope)
            change = W - last
            if np.linalg.norm(change) <= tol * np.linalg.norm(W):
                break
            if float(np.vdot(slope, change)) > 0.0:  # the momentum points uphill: restart it
                momentum = 1.0
            last_momentum, momentum = momentum, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            ahead = W + (last_momentum - 1.0) / momentum * change
        return W

    def _descent(self, codes: NDArray[np.int8], W: FloatArray, first: int, last: int) -> FloatArray:
        """Minus the gradient of the loss over a block of rows."""
        rows = self.rows(first, last)
        y, narrow = codes[first:last].astype(rows.dtype), W.astype(rows.dtype)
        descent = y * np.maximum(1.0 - y * (rows @ narrow[:-1] + narrow[-1]), 0.0)
        return np.vstack([rows.T @ descent, descent.sum(axis=0)]).astype(np.float64)
