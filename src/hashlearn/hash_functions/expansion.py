"""Fitted kernel methods: margin of bit b at x = Σ_i coefficients[i, b] k(x, s_i) + intercepts[b], for all bits at once.

A panel of rows costs one product with the points, one exp in place, and one product with the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hashlearn.core.arrays import tensor_like
from hashlearn.core.checks import checked_csr
from hashlearn.hash_functions.distinct_bits import DistinctBits
from hashlearn.hash_functions.fitted import PANEL_ROWS, FittedHashFunctions, PanelFunction, Rows, filled_up
from hashlearn.hash_functions.kernels import RBFPoints
from hashlearn.hash_functions.stored import stored_array, stored_number


class KernelExpansion(FittedHashFunctions):
    """Points, γ, a coefficient for each point and distinct bit, an intercept for each distinct bit."""

    kind = "kernel_expansion"
    stored: ClassVar[tuple[str, ...]] = ("gamma", "coefficients", "intercepts", "points")

    def __init__(
        self,
        points: Rows,
        gamma: float,
        coefficients: NDArray[np.float64],
        intercepts: NDArray[np.float64],
        bits: DistinctBits,
        description: str,
    ) -> None:
        super().__init__(points.shape[1], bits, description)
        self.points = points
        self.gamma = float(gamma)
        self.coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
        self.intercepts = np.asarray(intercepts, dtype=np.float64)
        self._densify = not sp.issparse(points)

    def _panel_function(self, dtype: np.dtype[Any], sparse: bool) -> tuple[PanelFunction, list[NDArray[Any]]]:
        points = RBFPoints(self.points, self.gamma, dtype)
        coefficients, intercepts = self.coefficients.astype(dtype), self.intercepts.astype(dtype)
        if points.sparse:
            # The product with the coefficients needs panels of the fixed shape too.
            return lambda panel: filled_up(points.kernel(panel), PANEL_ROWS) @ coefficients + intercepts, [coefficients]
        return lambda panel: points.kernel(panel) @ coefficients + intercepts, [points.scaled.T, coefficients]

    def _tensor_function(self, X: Any) -> tuple[Callable[[Any], Any], int]:
        if sp.issparse(self.points):
            return super()._tensor_function(X)
        points = RBFPoints(self.points, self.gamma).beside(X)
        coefficients, intercepts = tensor_like(self.coefficients, X), tensor_like(self.intercepts, X)
        return lambda rows: points.kernel(rows) @ coefficients + intercepts, len(self.coefficients)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> KernelExpansion:
        bits = DistinctBits.from_state(state)
        coefficients = stored_array(state, "coefficients", (None, bits.n_distinct))
        intercepts = stored_array(state, "intercepts", (bits.n_distinct,))
        points = stored_points(state, len(coefficients))
        return cls(points, stored_number(state, "gamma"), coefficients, intercepts, bits, state["description"])


def stored_points(state: dict[str, Any], m: int) -> Rows:
    """The m points of a state, dense or CSR, checked."""
    shape = (m, int(state["n_features"]))
    if "points" in state:
        return stored_array(state, "points", shape)
    data = stored_array(state, "points_data", (None,))
    indices, indptr = (stored_array(state, f"points_{part}", (None,), "i") for part in ("indices", "indptr"))
    return checked_csr(data, indices, indptr, shape)
