"""The steps that solve the relaxation (10) over unit rows V (n × k): with g_i = Σ_{j≠i} a_ij v_j, make v_i · g_i small.

All kinds of steps have the same methods. ``start(V)`` continues from unit rows V, which may be changed in place.
``step(check_time)`` returns the gain 2 Σ(‖g_i‖ + v_iᵀg_i), by how much single rows could still fall, or 0 if no step
helps.
``dual()`` is ``(trace(A VVᵀ), y)`` with y_i = a_ii − ‖g_i‖, the dual that belongs to V. ``pull`` is Σ‖g_i‖ as the last
step saw it.

* `MixingSweeps`, where A is sparse. The mixing method sets v_i ← u_i = −g_i/‖g_i‖, the best unit row while all others
  are fixed. Here the row goes beyond: v_i ← normalized(ω u_i − (ω − 1) v_i) with ω < 2. The angle to u_i shrinks, so
  the value never rises. As in successive over-relaxation, ω near 2 removes the slow tail: on a ±1 torus of 20,000
  nodes 300 sweeps reach a gap of 4e-5, plain mixing 2e-3. A sweep costs as much as one product A @ V. Rows of a large
  A are swept color by color of a greedy coloring. Rows of one color have no edge between them, so threads share them
  and the answer is the same for any number of threads.
* `DeviceSweeps`, the same for a sparse tensor on any device. A color's step is one sparse product.
* `QuasiNewton`, where A is dense or has a low-rank part: L-BFGS. One coordinate step changes the gradients of all rows
  there, and where parts of A cancel, thousands of sweeps are needed. A step of L-BFGS moves all rows at once and costs
  one product A @ V, which threads share. Pairs of the last steps are kept as they are although the tangent space turns
  (their direction is projected), and ‖g_i‖, the diagonal blocks of the Hessian, precondition. More than a few pairs
  gain nothing, measured for 4 to 20.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.flips import FAST
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.rows import Array
from hashlearn.core.arrays import FloatArray, Tensor
from hashlearn.core.threads import map_row_blocks, map_threads
from hashlearn.core.thresholds import COLORED_ROWS, MOST_COLORS

# Sweeps: ω = 2 − DELAY/(sweeps + DELAY); with other columns the count begins at RESTART.
DELAY, RESTART = 4.0, 16
NUMBERS_PER_PIECE = 2_000_000  # multiply-adds of one piece of threaded work
SWEEPS_AT_ONCE = 5  # on a device
ROWS_IN_DOUBLE = 1 << 18  # rows of V on a device that are made float64 at a time

# L-BFGS
PAIRS = 5
SUFFICIENT = 1e-4  # of the fall that the slope promises
SHORTEST_STEP = 1e-5
ROUNDING = 1e-15  # of Σ‖g_i‖: smaller falls of the value do not show


class _Sweeps:
    """What sweeps on the host and on a device share."""

    def __init__(self, A: Operator) -> None:
        self._A: Any = A
        self._diagonal, self._made, self._since, self._columns = A.diagonal(), 0, 0, 0
        self.pull = 0.0

    def start(self, V: Array) -> None:
        """Continue from unit rows V, which are changed in place."""
        if V.shape[1] != self._columns:
            self._since, self._columns = min(self._made, RESTART), V.shape[1]
        self.V = V

    def _next_omega(self) -> float:
        omega = 2.0 - DELAY / (self._since + DELAY)
        self._since, self._made = self._since + 1, self._made + 1
        return omega


class MixingSweeps(_Sweeps):
    """Sweeps for one sparse operator."""

    def __init__(self, A: Operator) -> None:
        super().__init__(A)
        self._matrix, self._norms = A.sparse, np.zeros(A.n)
        self._order: NDArray[np.int64] = np.arange(A.n)
        self._starts = np.array([0, A.n])
        if A.n >= COLORED_ROWS:
            colors = _greedy_colors(self._matrix.indices, self._matrix.indptr)
            if colors.max() < MOST_COLORS:
                self._order = np.argsort(colors, kind="stable")
                self._starts = np.concatenate([[0], np.cumsum(np.bincount(colors))])

    def step(self, check_time: Callable[[], Any]) -> float:
        """One sweep."""
        matrix, V = self._matrix, self.V
        parts = (matrix.data, matrix.indices, matrix.indptr, self._diagonal, V, self._norms, self._next_omega())
        rows = max(64, int(NUMBERS_PER_PIECE / (V.shape[1] * (1.0 + matrix.nnz / len(V)))))
        total = 0.0
        for first, last in zip(self._starts[:-1], self._starts[1:], strict=True):
            pieces = [self._order[a : min(a + rows, last)] for a in range(first, last, rows)]
            threaded = len(self._starts) > 2 and len(pieces) > 1
            mapped: Any = map_threads if threaded else map
            for part in mapped(lambda piece: _sweep(*parts, piece), pieces):
                total += part
                check_time()
        self.pull = float(self._norms.sum())
        return total

    def dual(self) -> tuple[float, FloatArray]:
        """``(trace(A VVᵀ), y)``, in float64."""
        V = self.V.astype(np.float64, copy=False)
        parts = map_row_blocks(lambda a, b: self._dots(V, a, b), len(V), V.shape[1])
        dots, norms = (np.concatenate(column) for column in zip(*parts, strict=True))
        return float(self._diagonal.sum() + dots.sum()), self._diagonal - norms

    def _dots(self, V: FloatArray, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """v_iᵀg_i and ‖g_i‖ of some rows."""
        G = self._matrix[first:last] @ V
        G -= self._diagonal[first:last, None] * V[first:last]
        return np.einsum("ic,ic->i", V[first:last], G), np.linalg.norm(G, axis=1)


class QuasiNewton:
    """Steps of L-BFGS for one operator."""

    def __init__(self, A: Operator) -> None:
        self._A, self._diagonal = A, A.diagonal()

    def start(self, V: FloatArray) -> None:
        """Continue from unit rows V."""
        self._pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=PAIRS)
        self._move(V, *self._products(V))

    def step(self, check_time: Callable[[], Any]) -> float:
        """One step; the gain is that of the V before it."""
        check_time()
        gain, noise, length = 2.0 * (self.pull + self._value), ROUNDING * self.pull, 1.0
        direction, slope = self._direction()
        if slope >= 0.0:
            self._pairs.clear()
            direction, slope = self._direction()
        while True:
            trial = unit_rows(self.V + length * direction)
            G, dots = self._products(trial)
            rise = float(dots.sum()) - self._value
            if rise <= SUFFICIENT * length * slope:
                break
            if length <= SHORTEST_STEP or -length * slope <= noise:
                # Without pairs no step helps: the value is at its minimum but for rounding.
                gain = gain if self._pairs else 0.0
                self._pairs.clear()
                return gain
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
        """``(trace(A VVᵀ), y)``."""
        return float(self._diagonal.sum()) + self._value, self._diagonal - self._norms

    def _products(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """All g_i, and all v_iᵀg_i."""
        G = self._A @ V
        G -= self._diagonal[:, None] * V
        return G, np.einsum("ic,ic->i", V, G)

    def _move(self, V: FloatArray, G: FloatArray, dots: FloatArray) -> None:
        self.V, self._value = V, float(dots.sum())
        self._norms = np.linalg.norm(G, axis=1)
        self.pull = float(self._norms.sum())
        self._metric = np.maximum(self._norms, 1e-6 * self.pull / len(V) + 1e-300)[:, None]
        G -= dots[:, None] * V
        self._gradient = G

    def _direction(self) -> tuple[FloatArray, float]:
        """−H · gradient by the two-loop recursion (Nocedal and Wright 2006, Algorithm 7.4), tangent, and its slope."""
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
        return q, 2.0 * float(np.vdot(self._gradient, q))


class DeviceSweeps(_Sweeps):
    """Sweeps for a sparse tensor, by the colors of its coloring. The host waits once for several of them."""

    def start(self, V: Tensor) -> None:
        """Continue from unit rows V, which are changed in place."""
        super().start(V)
        self._colors = self._A.coloring.parts(V.dtype)

    def step(self, check_time: Callable[[], Any]) -> float:
        """A few sweeps; the gain is that of the last one."""
        for _ in range(SWEEPS_AT_ONCE):
            omega = self._next_omega()
            sums = sum(self._sweep(rows, part, omega) for rows, part in self._colors)
        check_time()
        dots, self.pull = sums.tolist()
        return 2.0 * (self.pull + dots)

    def _sweep(self, rows: Tensor, part: Tensor, omega: float) -> Tensor:
        """The step of all rows of one color; returns Σ v_iᵀg_i and Σ‖g_i‖."""
        v, G, xp = self.V[rows], part @ self.V, self._A.rows.xp
        norms = xp.linalg.vector_norm(G, dim=1)
        sums = xp.stack([(G * v).sum(dtype=xp.float64), norms.sum(dtype=xp.float64)])
        G *= xp.where(norms > 0.0, -omega / norms, 0.0)[:, None]
        G.addcmul_(xp.where(norms > 0.0, 1.0 - omega, 1.0)[:, None], v)
        G /= xp.linalg.vector_norm(G, dim=1, keepdim=True)
        self.V[rows] = G
        return sums

    def dual(self) -> tuple[float, Tensor]:
        """``(trace(A VVᵀ), y)``, in float64 from products in the dtype of V; y is near that of V."""
        y, value = self._diagonal.clone(), self._diagonal.sum()
        for rows, part in self._colors:
            for piece, G in zip(rows.split(ROWS_IN_DOUBLE), (part @ self.V).split(ROWS_IN_DOUBLE), strict=True):
                v, g = self.V[piece].double(), G.double()
                y[piece] -= (g * g).sum(dim=1).sqrt()
                value = value + ((g * v).sum(dim=1) / (v * v).sum(dim=1).sqrt()).sum()
        return float(value), y


def unit_rows(V: Array) -> Array:
    """V with rows of length 1, in place."""
    V /= ((V * V).sum(axis=1) ** 0.5)[:, None]
    return V


def normals(A: Operator, rng: np.random.Generator, columns: int, single: bool = False) -> Array:
    """Independent standard normal numbers, n × columns, where A is; float32 if ``single``."""
    if A.rows.on_host:
        return rng.standard_normal((A.n, columns)).astype(np.float32 if single else np.float64, copy=False)
    device, xp = A.sparse.device, A.rows.xp
    generator = xp.Generator(device=device).manual_seed(int(rng.integers(2**62)))
    dtype = xp.float32 if single else xp.float64
    return xp.randn((A.n, columns), generator=generator, device=device, dtype=dtype)


@njit(cache=True, nogil=True)
def _greedy_colors(indices, indptr):  # type: ignore[no-untyped-def]
    n = len(indptr) - 1
    colors = np.full(n, -1, np.int64)
    taken = np.full(n + 1, -1, np.int64)
    for i in range(n):
        for q in range(indptr[i], indptr[i + 1]):
            color = colors[indices[q]]
            if color >= 0:
                taken[color] = i
        color = 0
        while taken[color] == i:
            color += 1
        colors[i] = color
    return colors


@njit(cache=True, nogil=True, fastmath=FAST)
def _sweep(data, indices, indptr, diagonal, V, norms, omega, order):  # type: ignore[no-untyped-def]
    """The over-relaxed steps of the rows in ``order``, in V; returns the sum of 2(‖g_i‖ + v_iᵀg_i) before each."""
    k = V.shape[1]
    g = np.empty(k, V.dtype)
    gain, back = 0.0, omega - 1.0
    for i in order:
        a = V.dtype.type(-diagonal[i])
        for c in range(k):
            g[c] = a * V[i, c]
        for q in range(indptr[i], indptr[i + 1]):
            a, j = V.dtype.type(data[q]), indices[q]
            for c in range(k):
                g[c] += a * V[j, c]
        square, dot = 0.0, 0.0
        for c in range(k):
            square += g[c] * g[c]
            dot += g[c] * V[i, c]
        norms[i] = norm = np.sqrt(square)
        if norm == 0.0:
            continue
        gain += 2.0 * (norm + dot)
        along, square = -omega / norm, 0.0
        for c in range(k):
            g[c] = along * g[c] - back * V[i, c]
            square += g[c] * g[c]
        factor = 1.0 / np.sqrt(square)
        for c in range(k):
            V[i, c] = factor * g[c]
    return gain
