"""L-BFGS over unit rows V (n × k): the steps that solve the relaxation (10) where A is dense or has a low-rank part.

One coordinate step changes the gradients of all rows there, and where parts of A cancel, thousands of sweeps are
needed. A step of L-BFGS moves all rows at once and costs one product A @ V, which threads share. Pairs of the last
steps are kept as they are although the tangent space turns (their direction is projected), and ‖g_i‖, the diagonal
blocks of the Hessian, precondition. More than a few pairs gain nothing, measured for 4 to 20.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn.bqp.operators import Operator
from hashlearn.core.arrays import FloatArray

PAIRS = 5
SUFFICIENT = 1e-4  # of the fall that the slope promises
SHORTEST_STEP = 1e-5
ROUNDING = 1e-15  # of Σ‖g_i‖: smaller falls of the value do not show


class QuasiNewton:
    """Steps for one operator; ``norms`` holds the ‖g_i‖ of the present V, where g_i = Σ_{j≠i} a_ij v_j."""

    def __init__(self, A: Operator) -> None:
        self._A, self._diagonal = A, A.diagonal()

    def start(self, V: FloatArray) -> None:
        """Continue from unit rows V."""
        self._pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=PAIRS)
        self._move(V, *self._products(V))

    def step(self, check_time: Callable[[], Any]) -> float:
        """One step; returns 2 Σ(‖g_i‖ + v_iᵀg_i), by how much single rows could still fall, or 0 if no step helps."""
        check_time()
        gain = 2.0 * float(self.norms.sum() + self._value)
        direction = self._direction()
        slope = 2.0 * float(np.vdot(self._gradient, direction))
        if slope >= 0.0:
            self._pairs.clear()
            direction = self._direction()
            slope = 2.0 * float(np.vdot(self._gradient, direction))
        noise = ROUNDING * float(self.norms.sum())
        length = 1.0
        while True:
            trial = unit_rows(self.V + length * direction)
            G, dots = self._products(trial)
            rise = float(dots.sum()) - self._value
            if rise <= SUFFICIENT * length * slope:
                break
            if length <= SHORTEST_STEP or -length * slope <= noise:
                return self._restarted(gain)
            curvature = rise - length * slope
            length *= min(max(-0.5 * length * slope / curvature, 0.1), 0.5)
        before = self._gradient
        self._move(trial, G, dots)
        step, change = length * direction, self._gradient - before
        product = float(np.vdot(step, change))
        if product > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._pairs.append((step, change, product))
        return gain

    def dual(self) -> tuple[float, FloatArray]:
        """``(trace(A VVᵀ), y)`` with y_i = a_ii − ‖g_i‖, the dual that belongs to V."""
        return float(self._diagonal.sum()) + self._value, self._diagonal - self.norms

    def dual_value(self) -> float:
        """Σy of `dual`."""
        return float(self._diagonal.sum() - self.norms.sum())

    def _restarted(self, gain: float) -> float:
        """Without pairs no step helps: the value is at its minimum but for rounding."""
        exhausted = not self._pairs
        self._pairs.clear()
        return 0.0 if exhausted else gain

    def _products(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """All g_i, and all v_iᵀg_i."""
        G = self._A @ V
        G -= self._diagonal[:, None] * V
        return G, np.einsum("ic,ic->i", V, G)

    def _move(self, V: FloatArray, G: FloatArray, dots: FloatArray) -> None:
        self.V, self._value = V, float(dots.sum())
        self.norms = np.linalg.norm(G, axis=1)
        self._metric = np.maximum(self.norms, 1e-6 * self.norms.mean() + 1e-300)[:, None]
        G -= dots[:, None] * V
        self._gradient = G

    def _direction(self) -> FloatArray:
        """−H · gradient by the two-loop recursion (Nocedal and Wright 2006, Algorithm 7.4), in the tangent space."""
        q = -self._gradient
        weights = []
        for step, change, product in reversed(self._pairs):
            weights.append(float(np.vdot(step, q)) / product)
            q -= weights[-1] * change
        q /= self._metric
        if self._pairs:
            _, change, product = self._pairs[-1]
            q *= product / float(np.vdot(change, change / self._metric))
        for step, change, product in self._pairs:
            q += (weights.pop() - float(np.vdot(change, q)) / product) * step
        q -= np.einsum("ic,ic->i", self.V, q)[:, None] * self.V
        return q


def unit_rows(V: FloatArray) -> FloatArray:
    """V with rows of length 1, in place."""
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    return V
