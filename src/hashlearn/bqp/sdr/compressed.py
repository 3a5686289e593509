"""The relaxation (10) of a low-rank problem, solved in the rank × k matrix T = PᵀV. Linear in n.

At the optimum over unit rows V every row is v_i = −g_i/‖g_i‖ with g_i = p_iᵀ W T, so T is a fixed point of
F(T) = PᵀV(T), one pass over P. The equation F(T) = T has rank · k unknowns however large n is, and is solved by

1. coordinate sweeps from random rows, on a sample of rows when n is large: they never rise and end near the optimum;
2. Newton's method on T: GMRES with products by the derivative of F, for a small rank preconditioned by
   (I + (1 − 1/k) PᵀD⁻¹P W)⁻¹, where D holds the ‖g_i‖. A step is taken if the value falls or the residual does. For
   large n the derivative is that of a sample of rows (a larger one when a step disappoints), the residual always that
   of all rows: an inexact Newton step costs little more than one pass over P;
3. the certificate. If it fails at a fixed point, that is a saddle: k is raised by a column along the direction of
   negative curvature that the certificate found, and the sweeps begin again from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from hashlearn.bqp.operators import FloatArray, LowRank
from hashlearn.bqp.run import Run
from hashlearn.bqp.sdr import row_kernels
from hashlearn.bqp.sdr.certificate import low_rank_bound
from hashlearn.bqp.sdr.krylov import gmres
from hashlearn.bqp.sdr.relaxation import Relaxation, Tolerance

SAMPLE_ROWS = 4_000  # rows that the start is computed on when n is more than twice that
JACOBIAN_ROWS = 20_000  # rows that stand for all in the derivative
START_SWEEPS = 30
ESCAPE_SWEEPS = 100
MAX_NEWTON_STEPS = 40
MAX_KRYLOV = 24
CHEAP_RANK = 200  # up to here the preconditioner costs less than the Krylov steps it saves
# Newton's first target as a multiple of the gap asked for. The proven gap came out at 0.05 to 0.15 of the residual;
# where a failed certificate costs as much as several steps, the safer multiple.
HOPEFUL, SAFE = 8.0, 2.0
SETTLED = 1e-5  # a sweep that moves rows less than this (mean square) hands over to Newton


@dataclass
class _Point:
    """A matrix T, its image F(T), and what the pass over P left behind."""

    T: FloatArray
    image: FloatArray
    norms: FloatArray
    value: float

    @property
    def residual(self) -> float:
        return float(np.linalg.norm(self.image - self.T)) / max(float(np.linalg.norm(self.image)), row_kernels.TINY)


def relax_low_rank(A: LowRank, tolerance: Tolerance, rank: int, rng: np.random.Generator, run: Run) -> Relaxation:
    """Solve (10) for A = P diag(w) Pᵀ to a certified gap; see `Relaxation` for what comes back."""
    n, P = A.n, A.P
    sampled = n > 2 * SAMPLE_ROWS
    sample = _some_rows(P, SAMPLE_ROWS, rng)
    V = rng.standard_normal((len(sample), rank))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    T = _sweep(sample, A.weights, V, run)
    if sampled:
        T = _newton(sample, A.weights, T, 3e-3, rng, run).image * (n / len(sample))

    best, bound, kind = None, -np.inf, "cholesky"
    first_target = (HOPEFUL if A.rank <= CHEAP_RANK else SAFE) * tolerance.relative
    target, careful, stalled = first_target, False, False
    for _ in range(tolerance.max_rounds):
        point = _newton(P, A.weights, T, target, rng, run, careful)
        run.tick("certificate")
        enough = None if A.rank <= CHEAP_RANK else tolerance.enough(point.value)
        certificate = low_rank_bound(A, point.norms, enough)
        bound = max(bound, certificate.bound)
        run.offer_bound(bound)
        if best is None or point.value < best.value:
            best = point
        if tolerance.met(best.value, bound):
            break
        if point.residual > 1e-9 and point.residual <= target:
            T, target = point.image, 0.1 * target
            continue
        # Where Newton stalled, sweeps go on from there; a fixed point that is not optimal needs one more column.
        stalled = point.residual > target and not stalled
        T = _swept(A, point, None if stalled else certificate.direction, run)
        target, careful = first_target, True
    assert best is not None
    B = A.weights[:, None] * best.T
    return Relaxation(A, best.value, bound, best.T.shape[1], kind, low_rank_factor=B)


def _sweep(
    P: FloatArray, weights: FloatArray, V: FloatArray, run: Run, count: int = START_SWEEPS, settled: float = SETTLED
) -> FloatArray:
    """Coordinate sweeps until the rows have settled; returns T = PᵀV, computed afresh."""
    T = P.T @ V
    for _ in range(count):
        run.tick("sweeps")
        if row_kernels.mixing_sweep(P, weights, V, T) < settled:
            break
    return P.T @ V


def _newton(
    P: FloatArray,
    weights: FloatArray,
    T: FloatArray,
    target: float,
    rng: np.random.Generator,
    run: Run,
    careful: bool = False,
) -> _Point:
    """Newton steps on F(T) = T until the residual is below ``target`` or no step helps."""
    point = _evaluate(P, weights, T)
    rows = _some_rows(P, JACOBIAN_ROWS, rng)
    for _ in range(MAX_NEWTON_STEPS):
        run.tick("newton")
        residual = point.residual
        if residual <= target:
            break
        local = _Linearised(rows, weights, point.T, len(P))
        preconditioner = local.preconditioner() if len(weights) <= CHEAP_RANK else None
        # No more accurate than the next residual can profit from, or than is asked for.
        accuracy = max(min(0.03, residual) if careful else min(0.1, residual**0.75), 0.3 * target / residual)
        step = local.solve(point.image - point.T, accuracy, preconditioner)
        for length in (1.0, 0.5, 0.25, 0.125, 0.0625):
            trial = _evaluate(P, weights, point.T + length * step)
            falls = trial.value < point.value - 1e-9 * abs(point.value)
            rises = trial.value > point.value + 1e-7 * abs(point.value)  # towards a saddle, that is
            if falls or (not rises and trial.residual < (1.0 - 0.1 * length) * residual):
                point = trial
                break
        else:
            if len(rows) == len(P):
                break
        if point.residual > 0.3 * residual and len(rows) < len(P):
            rows = _some_rows(P, 4 * len(rows), rng)
    return point


def _some_rows(P: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """A sample of ``count`` rows; all of them when that would be half of P or more."""
    return P if 2 * count >= len(P) else P[np.sort(rng.choice(len(P), count, replace=False))]


def _evaluate(P: FloatArray, weights: FloatArray, T: FloatArray) -> _Point:
    image, norms = row_kernels.image(P, weights[:, None] * T)
    return _Point(T, image, norms, float(weights @ np.einsum("jc,jc->j", image, image)))


class _Linearised:
    """I − F'(T), with F' taken on a sample of rows and scaled up to all ``n``."""

    def __init__(self, rows: FloatArray, weights: FloatArray, T: FloatArray, n: int) -> None:
        self._rows, self._weights = rows, weights[:, None]
        self._scale = n / len(rows)
        self._shape = T.shape
        _, self._V, self._norms = row_kernels.unit_rows(rows, self._weights * T)

    def preconditioner(self) -> FloatArray:
        """(I + (1 − 1/k) PᵀD⁻¹P W)⁻¹: what is left of I − F' when projections are replaced by their mean."""
        divisor = np.maximum(self._norms, 1e-3 * self._norms.mean())
        gram = self._scale * row_kernels.weighted_gram(self._rows, divisor)
        damped = (1.0 - 1.0 / self._shape[1]) * gram * self._weights.T
        try:
            return np.linalg.inv(np.eye(len(gram)) + damped)
        except np.linalg.LinAlgError:
            return np.eye(len(gram))

    def solve(self, right: FloatArray, accuracy: float, preconditioner: FloatArray | None) -> FloatArray:
        shape, scale = self._shape, self._scale

        def product(x: FloatArray) -> FloatArray:
            direction = x.reshape(shape)
            change = row_kernels.derivative(self._rows, self._V, self._norms, self._weights * direction)
            return (direction - scale * change).ravel()

        precondition = None
        if preconditioner is not None:
            apply = partial(np.matmul, preconditioner)
            precondition = lambda x: apply(x.reshape(shape)).ravel()  # noqa: E731
        steps = min(MAX_KRYLOV, right.size)
        return gmres(product, right.ravel(), accuracy, steps, precondition).reshape(shape)


def _swept(A: LowRank, point: _Point, direction: FloatArray | None, run: Run) -> FloatArray:
    """T after sweeps over all rows, with one more column along ``direction`` (Pᵀu for an eigenvector u) if given."""
    T = point.image
    if direction is not None:
        length = max(float(np.linalg.norm(direction)), row_kernels.TINY)
        column = direction * (0.1 * np.linalg.norm(T) / length)
        T = np.ascontiguousarray(np.column_stack([T, column]))
    _, V, _ = row_kernels.unit_rows(A.P, A.weights[:, None] * T)
    return _sweep(A.P, A.weights, V, run, ESCAPE_SWEEPS, settled=0.0)
