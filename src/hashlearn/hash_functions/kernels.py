"""The RBF kernel exp(−γ‖x − s‖²) against a fixed set of points, as one product and one exp for each panel.

With z = √(2γ) (x − center), and s likewise, −γ‖x − s‖² = z·s − ‖z‖²/2 − ‖s‖²/2. The center is the mean of the points.
It changes no distance, but without it features far from zero would lose digits in the difference. Sparse points are
not centered and stay sparse.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import is_tensor, tensor_like
from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.hash_functions.batch_invariant import Rows

GRAM_BLOCK = 512


class RBFPoints:
    """Points s_1 … s_m, centered and scaled, in one dtype."""

    def __init__(self, points: Rows, gamma: float, dtype: Any = np.float64) -> None:
        self.sparse = sp.issparse(points)
        self.dtype = np.dtype(dtype)
        self.factor = float(np.sqrt(2.0 * gamma))
        mean = None if self.sparse else np.asarray(points.sum(axis=0, dtype=np.float64)) / max(len(points), 1)
        self.center = None if mean is None else mean.astype(self.dtype)
        scaled = self._scaled(points.astype(np.float64))
        self.half_norms = (0.5 * _squared_norms(scaled)).astype(self.dtype)
        self.scaled = scaled.astype(self.dtype)

    def beside(self, tensor: Any) -> RBFPoints:
        """The same points as tensors on the device of ``tensor`` and in its dtype: `kernel` then takes tensors."""
        moved = copy(self)
        moved.center, moved.half_norms, moved.scaled = (
            tensor_like(part, tensor) for part in (self.center, self.half_norms, self.scaled)
        )
        return moved

    def kernel(self, rows: Rows) -> NDArray[Any]:
        """Kernel values of rows × points, in the dtype of the points. ``rows`` are CSR if the points are sparse."""
        if self.sparse:
            rows = sp.csr_array(rows)
        z = self._scaled(rows if is_tensor(rows) else rows.astype(self.dtype, copy=False))
        return self._exponential(z, 0.5 * _squared_norms(z), 0)

    def gram(self) -> NDArray[Any]:
        """Kernel values of points × points: symmetric, with ones on the diagonal. Each pair is computed once."""
        m = self.scaled.shape[0]
        K = np.empty((m, m), dtype=self.dtype)

        def fill(first: int) -> None:
            last = min(first + GRAM_BLOCK, m)
            block = self._exponential(self.scaled[first:last], self.half_norms[first:last], first)
            corner = block[:, : last - first]
            corner[:] = 0.5 * (corner + corner.T)
            np.fill_diagonal(corner, 1.0)
            K[first:last, first:] = block
            K[last:, first:last] = block[:, last - first :].T

        with one_blas_thread():
            for _ in map_threads(fill, range(0, m, GRAM_BLOCK)):
                pass
        return K

    def _scaled(self, rows: Rows) -> Rows:
        if self.center is None:
            return rows * rows.dtype.type(self.factor)
        z = rows - self.center
        z *= self.factor
        return z

    def _exponential(self, z: Rows, half_norms: NDArray[Any], first_point: int) -> NDArray[Any]:
        K = z @ self.scaled[first_point:].T
        if self.sparse:
            K = K.toarray()
        K -= half_norms[:, None]
        K -= self.half_norms[first_point:]
        if is_tensor(K):
            return K.clamp_(max=0.0).exp_()
        np.minimum(K, 0.0, out=K)  # rounding must not make a distance negative
        return np.exp(K, out=K)


def _squared_norms(rows: Rows) -> NDArray[Any]:
    if sp.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), dtype=rows.dtype).ravel()
    return (rows * rows).sum(axis=1)
