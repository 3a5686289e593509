"""The relaxation (10) of a sparse A on a device, by PyTorch: sweeps by colors, the Chebyshev test, rounding, flips.

The algorithm is that of `general`, `mixing` and `chebyshev`; the notes there hold here. Nodes are numbered by color,
so every color is a slice of V, and its step is one sparse product. Rows of one color have no edge between them. So a
pass of single flips by colors never raises the value. V is float32; everything behind a bound or a reported value is
float64. It needs IEEE arithmetic and products whose sums may be in any order.

Memory: V, one product of the largest color, and for the test three blocks of eight float64 columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hashlearn.bqp.sdr.chebyshev import (
    COLUMNS,
    LARGEST_GROWTH,
    LEAST_METRIC,
    MOST_RESTARTS,
    growth_bound,
    restarted_top,
    steps_for,
)
from hashlearn.core.arrays import EPS, Tensor, to_float64

DELAY, RESTART = 4.0, 16  # as in `general`
GAIN_AT_GAP, STUCK, NEW_COLUMNS, LOSS_SHARE = 1.0 / 150.0, 1000.0, 0.05, 0.6
MOST_SWEEPS = 2000
DRAWS_AT_ONCE = 8
ROWS_IN_DOUBLE = 1 << 18  # float64 copies of V are made in pieces
SMALLEST_GAP = 2e-5  # of V in float32
LANCZOS_STEPS = 20


def relax_on_device(
    A: ColoredMatrix, gap: float, width: int, n_draws: int, state: Any, propose: Callable[[Tensor], Any]
) -> DeviceRelaxation:
    """Relax, propose the bounds, round and descend; ``propose`` gets signs in the order of the user's nodes."""
    limit = state.seconds + state.seconds_left
    place = torch.empty_like(A.order)
    place[A.order] = torch.arange(A.n, device=A.device)
    magnitudes = float(A.magnitudes().sum())
    rounding = 2.0 * (A.n + 16) * EPS * (magnitudes + float(A.diagonal.abs().sum()))
    state.propose_bound(math.nextafter(float(A.diagonal.sum()) - magnitudes - rounding - A.error, -math.inf))
    state.details["certificate"] = "diagonal"
    start = torch.where(torch.rand((A.n, 1), generator=A.generator, device=A.device) < 0.5, -1.0, 1.0)
    propose(A.descend(start, 2)[place, 0])
    relaxation = DeviceRelaxation(A, gap, state.check_time)
    V = relaxation.solve(width, late=lambda: state.seconds_left < 0.5 * limit < math.inf)
    if state.propose_bound(relaxation.bound):
        state.details["certificate"] = "chebyshev"
    for _ in range(max(1, n_draws // DRAWS_AT_ONCE)):
        state.check_time("rounding")
        X = A.descend(draws(A, V, DRAWS_AT_ONCE))
        propose(X[:, int(A.values(X).argmin())][place])
    relaxation.width = V.shape[1]
    return relaxation


class ColoredMatrix:
    """A symmetric CSR tensor, its nodes numbered by colors. ``order[new]`` is the old number of a node."""

    def __init__(self, matrix: Tensor, seed: int = 0, error: float = 0.0) -> None:
        n = matrix.shape[0]
        self.error = error  # rounding of the entries, added up
        rows, columns, data = _coordinates(matrix)
        self.n, self.device = n, data.device
        self.generator = torch.Generator(device=self.device).manual_seed(seed)
        on = rows == columns
        self.diagonal = torch.zeros(n, dtype=torch.float64, device=self.device).index_add_(0, rows[on], data[on])
        rows, columns, data = rows[~on], columns[~on], data[~on]
        colors = _colors(rows, columns, n, self.generator)
        self.order = torch.argsort(colors, stable=True)
        place = torch.empty_like(self.order)
        place[self.order] = torch.arange(n, device=self.device)
        counts = torch.bincount(colors).tolist()
        self.edges = [0, *np.cumsum(counts).tolist()]
        rows, columns = place[rows], place[columns]
        by_row = torch.argsort(rows * n + columns)
        self.columns, self.data = columns[by_row], data[by_row]
        self.rows = rows[by_row]
        self.pointers = torch.zeros(n + 1, dtype=torch.int64, device=self.device)
        self.pointers[1:] = torch.bincount(self.rows, minlength=n).cumsum(0)
        self.diagonal = self.diagonal[self.order]
        self.classes = [self._part(a, b) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]

    def _part(self, a: int, b: int) -> Tensor:
        first, last = int(self.pointers[a]), int(self.pointers[b])
        pointers = self.pointers[a : b + 1] - first
        return _csr(pointers, self.columns[first:last], self.data[first:last].float(), (b - a, self.n))

    def whole(self, data: Tensor | None = None) -> Tensor:
        """All off-diagonal entries as one float64 CSR tensor, or other data in their places."""
        return _csr(self.pointers, self.columns, self.data if data is None else data, (self.n, self.n))

    def magnitudes(self) -> Tensor:
        """Σ_{j≠i} |a_ij| for every row."""
        return torch.zeros_like(self.diagonal).index_add_(0, self.rows, self.data.abs())

    def sweep(self, V: Tensor, omega: float) -> tuple[Tensor, Tensor]:
        """An over-relaxed sweep in place: (what the rows could still gain, Σ‖g_i‖) as tensors on the device."""
        gain = torch.zeros((), dtype=torch.float64, device=self.device)
        total = torch.zeros_like(gain)
        for part, a, b in zip(self.classes, self.edges[:-1], self.edges[1:], strict=True):
            G, v = part @ V, V[a:b]
            norms = torch.linalg.vector_norm(G, dim=1)
            gain += 2.0 * (norms + (G * v).sum(dim=1)).sum(dtype=torch.float64)
            total += norms.sum(dtype=torch.float64)
            G *= (-omega / norms.clamp_min(1e-30))[:, None]
            G -= (omega - 1.0) * v
            length = torch.linalg.vector_norm(G, dim=1, keepdim=True)
            V[a:b] = torch.where(length > 0.5 * (2.0 - omega), G / length, v)
        return gain, total

    def dual(self, V: Tensor) -> tuple[float, Tensor]:
        """``(trace(A VVᵀ), ‖g_i‖)``; the norms are float64 numbers near those of float32 products."""
        value = float(self.diagonal.sum())
        norms = []
        for part, a, b in zip(self.classes, self.edges[:-1], self.edges[1:], strict=True):
            G = part @ V
            norms.append(torch.linalg.vector_norm(G, dim=1).double())
            for first in range(0, b - a, ROWS_IN_DOUBLE):
                rows = V[a:b][first : first + ROWS_IN_DOUBLE].double()
                products = (G[first : first + ROWS_IN_DOUBLE].double() * rows).sum(dim=1)
                value += float((products / (rows * rows).sum(dim=1)).sum())
        return value, torch.cat(norms)

    def descend(self, X: Tensor, passes: int = 200) -> Tensor:
        """Single flips in every column of X (float32 signs) until none helps, color by color."""
        for _ in range(passes):
            changed = torch.zeros((), dtype=torch.int64, device=self.device)
            for part, a, b in zip(self.classes, self.edges[:-1], self.edges[1:], strict=True):
                field = part @ X
                new = torch.where(field > 0, -1.0, torch.where(field < 0, 1.0, X[a:b]))
                changed += (new != X[a:b]).sum()
                X[a:b] = new
            if int(changed) == 0:
                break
        return X

    def values(self, X: Tensor) -> Tensor:
        """xᵀAx of every column of signs, float64."""
        total = torch.zeros(X.shape[1], dtype=torch.float64, device=self.device)
        for q in range(X.shape[1]):
            x = X[:, q : q + 1].double()
            total[q] = (x * (self.whole() @ x)).sum()
        return total + self.diagonal.sum()


class DeviceRelaxation:
    """Sweeps, certificates and more columns until value and bound are within ``gap``. Call `solve`."""

    width: int = 0  # columns of V at the end

    def __init__(self, A: ColoredMatrix, gap: float, check_time: Callable[[str], Any] = lambda stage: None) -> None:
        self.A, self.gap, self.check_time = A, max(gap, SMALLEST_GAP), check_time
        self.value, self.bound, self.since, self.sweeps = math.inf, -math.inf, 0, 0

    def solve(self, width: int, rounds: int = 10, late: Callable[[], bool] = lambda: False) -> Tensor:
        """V, with ``value`` and ``bound`` set."""
        A = self.A
        V = torch.randn((A.n, width), generator=A.generator, device=A.device)
        V /= torch.linalg.vector_norm(V, dim=1, keepdim=True)
        target, averaged = GAIN_AT_GAP * self.gap, False
        for _ in range(rounds):
            gain = self._settle(V, target, late)
            value, norms = A.dual(V)
            bound, columns = chebyshev_bound(A, norms, LOSS_SHARE * self.gap * abs(value), self.check_time)
            self.value, self.bound = min(self.value, value), max(self.bound, bound)
            if not self._is_solved() and not averaged:
                # The mean of the norms serves graphs that look alike everywhere, such as regular ones.
                averaged = True
                mean = torch.full_like(norms, float(norms.mean()))
                self.bound = max(
                    self.bound, chebyshev_bound(A, mean, LOSS_SHARE * self.gap * abs(value), self.check_time)[0]
                )
            if self._is_solved() or late():
                break
            if value - bound > STUCK * gain and V.shape[1] < 4 * width:
                V = self._wider(V, columns)
            else:
                target *= 0.3
        return V

    def _is_solved(self) -> bool:
        return self.value - self.bound <= self.gap * abs(self.bound)

    def _settle(self, V: Tensor, target: float, late: Callable[[], bool]) -> float:
        for made in range(MOST_SWEEPS):
            gain, total = self.A.sweep(V, 2.0 - DELAY / (self.since + DELAY))
            self.since += 1
            self.sweeps += 1
            if made % 5 == 4:
                self.check_time("sweeps")
                if late() or float(gain) <= target * float(total):
                    break
        value, norms = self.A.dual(V)
        return max(2.0 * (value - float(self.A.diagonal.sum() - norms.sum())), float(gain) * 0.1)

    def _wider(self, V: Tensor, columns: Tensor) -> Tensor:
        """V with half as many columns again; no more than the old and the new V are stored at a time."""
        old = V.shape[1]
        count = max(8, 8 * round(old / 16))
        wider = V.new_empty((self.A.n, old + count))
        wider[:, :old] = V
        new = wider[:, old:].normal_(generator=self.A.generator)
        new[:, :COLUMNS] = columns / columns.square().mean(dim=0).sqrt()
        new *= math.sqrt(NEW_COLUMNS / count)
        wider /= torch.linalg.vector_norm(wider, dim=1, keepdim=True)
        self.since = RESTART
        return wider


def chebyshev_bound(
    A: ColoredMatrix, norms: Tensor, loss: float, check_time: Callable[[str], Any]
) -> tuple[float, Tensor]:
    """A bound on min xᵀAx from d = ``norms``, valid except with `FAILURE_PROBABILITY`, and columns for more rank."""
    n = A.n
    mean = float(norms.mean())
    d = norms.clamp_min(LEAST_METRIC * mean) if mean > 0.0 else torch.ones_like(norms)
    scale = d.rsqrt()
    data = A.data * scale[A.rows] * scale[A.columns]
    M = A.whole(data)
    diagonal = norms * scale * scale  # of A − Diag(y), y = −norms: the off-diagonal part and the norms
    size = _size(A.whole(data.abs()), diagonal) * (1.0 + 64.0 * EPS)
    top = min(_top(M, diagonal, A.generator), size)
    total = float((1.0 / (scale * scale)).sum())
    for _ in range(MOST_RESTARTS):
        half = 0.5 * top
        steps = steps_for(n, loss / (half * total))
        Z, history = _recurrence(A, M, diagonal, half, steps, check_time)
        products = (Z * (M @ Z + diagonal[:, None] * Z)).sum(dim=0)
        quotient = float((products / Z.square().sum(dim=0)).max()) if len(history) < steps else 0.0
        if quotient <= top:
            break
        top = restarted_top(quotient, size)
    degree = float((A.pointers[1:] - A.pointers[:-1]).max())
    rounding = EPS * ((degree + 12.0) * 2.0 * (size + half) / half + 4.0)
    # The error of a step is measured against both blocks that it reads, so the norms are made to rise.
    errors = rounding * (1.0 + n * EPS) * to_float64(history.cummax(0).values)
    shift = growth_bound(float(torch.linalg.vector_norm(Z, dim=0).max()) * (1.0 + n * EPS), errors) * half
    shift = min(shift * (1.0 + 1e-12), size)
    parts = abs(float(A.diagonal.abs().sum())) + float(norms.sum()) + abs(shift) * total
    bound = float(A.diagonal.sum()) - float(norms.sum()) - shift * total
    return math.nextafter(bound - A.error - 2.0 * (n + 16) * EPS * parts, -math.inf), scale[:, None] * Z


def _recurrence(
    A: ColoredMatrix, M: Tensor, diagonal: Tensor, half: float, steps: int, check_time: Callable[[str], Any]
) -> tuple[Tensor, Tensor]:
    """See `chebyshev._recurrence`."""
    Z = torch.randn((A.n, COLUMNS), generator=A.generator, device=A.device, dtype=torch.float64)
    previous = torch.zeros_like(Z)
    shifted = (diagonal - half)[:, None]
    norms = torch.zeros(steps + 1, dtype=torch.float64, device=A.device)
    norms[0] = first = torch.linalg.vector_norm(Z)
    for made in range(1, steps + 1):
        factor = (1.0 if made == 1 else 2.0) / half
        previous.neg_().add_(M @ Z, alpha=factor).add_(shifted * Z, alpha=factor)
        Z, previous = previous, Z
        norms[made] = torch.linalg.vector_norm(Z)
        if made % 16 == 0:  # the host waits for the device only now and then
            check_time("certificate")
            if bool(norms[made] > LARGEST_GROWTH * first):
                break
    return Z, norms[:made]


def draws(A: ColoredMatrix, V: Tensor, count: int) -> Tensor:
    """Signs of ``count`` random projections of V, float32."""
    normals = torch.randn((V.shape[1], count), generator=A.generator, device=V.device)
    return torch.where(V @ normals < 0, -1.0, 1.0)


def _coordinates(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    coo = matrix.to_sparse_coo().coalesce()
    rows, columns = coo.indices()
    return rows, columns, coo.values().double()


def _csr(pointers: Tensor, columns: Tensor, data: Tensor, shape: tuple[int, int]) -> Tensor:
    index = torch.int32 if len(data) < 2**31 else torch.int64
    return torch.sparse_csr_tensor(pointers.to(index), columns.to(index), data, shape, check_invariants=False)


def _colors(rows: Tensor, columns: Tensor, n: int, generator: Any) -> Tensor:
    """Each color is a maximal independent set of what is left (Luby 1986), so there are at most max degree + 1."""
    colors = torch.full((n,), -1, dtype=torch.int64, device=rows.device)
    color = 0
    while bool((colors < 0).any()):
        candidates = colors < 0
        while bool(candidates.any()):
            priority = torch.rand(n, generator=generator, device=rows.device, dtype=torch.float64)
            priority = torch.where(candidates, priority + 1e-3, 0.0)
            largest = torch.zeros_like(priority).scatter_reduce_(0, rows, priority[columns], "amax")
            chosen = candidates & (priority > largest)
            near = torch.zeros(n, device=rows.device).scatter_reduce_(0, rows, chosen[columns].float(), "amax") > 0
            colors[chosen] = color
            candidates = candidates & ~chosen & ~near
        color += 1
    return colors


def _size(K: Tensor, diagonal: Tensor) -> float:
    """At least ‖K + Diag‖₂ for K ≥ 0: the largest quotient (Ku + Diag u)_i / u_i."""
    u = torch.ones_like(diagonal)
    least = math.inf
    for _ in range(6):
        product = (K @ u[:, None])[:, 0] + diagonal.abs() * u
        least = min(least, float((product / u).max()))
        u = product / product.max() + 1e-3
    return max(least, 1e-300)


def _top(M: Tensor, diagonal: Tensor, generator: Any) -> float:
    """The largest eigenvalue of M + Diag, estimated from above by a few Lanczos steps."""
    q = torch.randn((len(diagonal), 1), generator=generator, device=diagonal.device, dtype=torch.float64)
    q /= torch.linalg.vector_norm(q)
    previous, beta = torch.zeros_like(q), 0.0
    T = np.zeros((LANCZOS_STEPS, LANCZOS_STEPS))
    for k in range(LANCZOS_STEPS):
        z = M @ q + diagonal[:, None] * q - beta * previous
        T[k, k] = float((q * z).sum())
        z -= T[k, k] * q
        beta = float(torch.linalg.vector_norm(z))
        if k + 1 < LANCZOS_STEPS:
            T[k, k + 1] = T[k + 1, k] = beta
        previous, q = q, z / max(beta, 1e-300)
        if beta < 1e-12:
            break
    values, vectors = np.linalg.eigh(T[: k + 1, : k + 1])
    return float(values[-1] + beta * abs(vectors[-1, -1])) + 1e-3
