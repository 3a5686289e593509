"""The relaxation (10) over unit rows V (n × k) with X = VVᵀ, for every kind of operator. It needs products with A only.

1. Coordinate sweeps v_i ← −g_i/‖g_i‖ (the mixing method) from random rows: the value never rises.
2. A trust-region Newton method on the product of spheres, steps by truncated conjugate gradients, preconditioned by
   ‖g_i‖, the exact diagonal blocks of the Hessian.
3. The certificate with y_i = v_iᵀ(AV)_i. If it fails at a stationary point, the eigenvector behind the failure becomes
   a new column of V (a direction of descent), and the rank grows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from hashlearn.bqp.operators import Dense, Operator
from hashlearn.bqp.sdr.certificate import dual_bound
from hashlearn.bqp.sdr.relaxation import Relaxation, Tolerance
from hashlearn.bqp.solution import Run
from hashlearn.bqp.sweeps import split_parts
from hashlearn.core.arrays import FloatArray

START_SWEEPS = 20
ESCAPE_SWEEPS = 5
MAX_NEWTON_STEPS = 60
MAX_CG_STEPS = 200


def relax_factored(A: Operator, tolerance: Tolerance, rank: int, rng: np.random.Generator, run: Run) -> Relaxation:
    """Solve (10) to a certified gap; see `Relaxation` for the result."""
    n = A.n
    sweep = _sweeper(A)
    V = rng.standard_normal((n, min(rank, n)))
    _normalize(V)
    _sweep(sweep, V, START_SWEEPS, run)
    best, bound, kind = None, -np.inf, "cholesky"
    value = np.inf
    target = np.sqrt(tolerance.relative) * 0.03
    for _ in range(tolerance.max_rounds):
        V, f, y, reached = _newton(A, V, target, tolerance.scale, run)
        tick = partial(run.tick, "certificate")
        tick()
        certificate = dual_bound(A, y, rng, tick, tolerance.enough(f), tolerance.proof_limit)
        kind = certificate.kind
        bound = max(bound, certificate.bound)
        run.offer_bound(bound)
        if f < value:
            best, value = V, f
        if tolerance.met(value, bound):
            break
        if kind == "lanczos":
            break  # the rest of the gap comes from its accuracy, not from V
        if reached and target > 1e-9:
            target *= 0.03
            continue
        if V.shape[1] > np.sqrt(2 * n) + 8:
            break  # every minimum of this rank is global
        V = _with_column(V, certificate.direction)
        _sweep(sweep, V, ESCAPE_SWEEPS, run)
    assert best is not None
    return Relaxation(A, value, bound, best.shape[1], kind, unit_rows=best)


def _sweep(sweep: Callable[[FloatArray], None], V: FloatArray, count: int, run: Run) -> None:
    for _ in range(count):
        run.tick("sweeps")
        sweep(V)


def _sweeper(A: Operator) -> Callable[[FloatArray], None]:
    diagonal = A.diagonal()
    if isinstance(A, Dense):
        return lambda V: _sweep_dense(A.array, diagonal, V)
    parts = split_parts(A)
    P = parts[3]
    return lambda V: _sweep_split(*parts, diagonal, V, np.ascontiguousarray(P.T @ V))


def _newton(
    A: Operator, V: FloatArray, target: float, scale: float, run: Run
) -> tuple[FloatArray, float, FloatArray, bool]:
    """Trust-region Newton steps until the relative gradient is below ``target``: (V, value, y, whether it is)."""
    diagonal = A.diagonal()
    AV = A @ V
    radius = 0.3 * np.sqrt(A.n)
    for _ in range(MAX_NEWTON_STEPS):
        run.tick("newton")
        y = _rowwise(V, AV)
        value = float(y.sum())
        gradient = AV - y[:, None] * V
        d = np.maximum(diagonal - y, 1e-6 * max(scale / A.n, np.abs(y).mean()))[:, None]
        size = np.sqrt(float(np.sum(gradient * gradient / d)) / float(d.sum()))
        if size <= target:
            return V, value, y, True
        step, predicted, at_edge = _truncated_cg(A, V, y, gradient, d, radius, min(0.1, size), run)
        trial = V + step
        _normalize(trial)
        A_trial = A @ trial
        fall = value - float(np.sum(trial * A_trial))
        ratio = fall / predicted if predicted > 0.0 else 0.0
        noise = 1e-13 * abs(value) >= predicted
        if ratio < 0.25 and not noise:
            radius *= 0.25
        elif ratio > 0.75 and at_edge:
            radius = min(2.0 * radius, np.sqrt(A.n))
        if fall > 0.0 or noise:
            V, AV = trial, A_trial
        if radius < 1e-9 or (noise and fall <= 0.0):
            break
    y = _rowwise(V, AV)
    return V, float(y.sum()), y, False


def _truncated_cg(
    A: Operator,
    V: FloatArray,
    y: FloatArray,
    gradient: FloatArray,
    d: FloatArray,
    radius: float,
    accuracy: float,
    run: Run,
) -> tuple[FloatArray, float, bool]:
    """Steihaug's method for ½⟨U, HU⟩ + ⟨G, U⟩ in the tangent space: (step, predicted fall of value, at the edge)."""
    U = np.zeros_like(V)
    HU = np.zeros_like(V)
    r = gradient.copy()
    z = _tangent(V, r / d)
    p = -z
    rz = float(np.sum(r * z))
    stop = accuracy * accuracy * rz
    at_edge = False
    mean_d = float(d.mean())
    for q in range(MAX_CG_STEPS):
        if q % 20 == 19:
            run.tick("newton")
        Hp = _tangent(V, A @ p) - y[:, None] * p
        curvature = float(np.sum(p * Hp))
        # The length is measured in the preconditioner's norm, as Steihaug's theory wants it.
        pp, up, uu = (float(np.sum(a * d * b)) / mean_d for a, b in ((p, p), (U, p), (U, U)))
        alpha = rz / curvature if curvature > 0.0 else np.inf
        if curvature <= 0.0 or uu + 2.0 * alpha * up + alpha * alpha * pp >= radius * radius:
            alpha = (-up + np.sqrt(up * up + pp * max(radius * radius - uu, 0.0))) / pp
            at_edge = True
        U += alpha * p
        HU += alpha * Hp
        if at_edge:
            break
        r += alpha * Hp
        z = _tangent(V, r / d)
        rz_new = float(np.sum(r * z))
        if rz_new <= stop:
            break
        p = rz_new / rz * p - z
        rz = rz_new
    predicted = -2.0 * float(np.sum(gradient * U)) - float(np.sum(U * HU))
    return U, predicted, at_edge


def _rowwise(V: FloatArray, W: FloatArray) -> FloatArray:
    return np.einsum("ic,ic->i", V, W)


def _tangent(V: FloatArray, W: FloatArray) -> FloatArray:
    return W - _rowwise(V, W)[:, None] * V


def _normalize(V: FloatArray) -> None:
    V /= np.linalg.norm(V, axis=1, keepdims=True)


def _with_column(V: FloatArray, direction: FloatArray) -> FloatArray:
    column = 0.1 * np.sqrt(len(V)) * direction / np.linalg.norm(direction)
    wider = np.ascontiguousarray(np.column_stack([V, column]))
    _normalize(wider)
    return wider


@njit(cache=True, nogil=True)
def _sweep_dense(A, diagonal, V):  # type: ignore[no-untyped-def]
    n, k = V.shape
    for i in range(n):
        g = np.dot(A[i], V)
        square = 0.0
        for c in range(k):
            g[c] -= diagonal[i] * V[i, c]
            square += g[c] * g[c]
        if square > 0.0:
            V[i] = g * (-1.0 / np.sqrt(square))


@njit(cache=True, nogil=True)
def _sweep_split(data, indices, indptr, P, weights, diagonal, V, T):  # type: ignore[no-untyped-def]
    n, k = V.shape
    rank = P.shape[1]
    g = np.empty(k)
    for i in range(n):
        for c in range(k):
            g[c] = -diagonal[i] * V[i, c]
        for q in range(indptr[i], indptr[i + 1]):
            for c in range(k):
                g[c] += data[q] * V[indices[q], c]
        for j in range(rank):
            a = P[i, j] * weights[j]
            for c in range(k):
                g[c] += a * T[j, c]
        square = 0.0
        for c in range(k):
            square += g[c] * g[c]
        if square == 0.0:
            continue
        inverse = -1.0 / np.sqrt(square)
        for c in range(k):
            new = g[c] * inverse
            g[c] = new - V[i, c]
            V[i, c] = new
        for j in range(rank):
            for c in range(k):
                T[j, c] += P[i, j] * g[c]
