"""Newton steps for the relaxation (10) over unit rows V (n × k), where sweeps converge too slowly.

That is so if large parts of A cancel: the value is then small against the steps of single rows. The trust-region method
works on the product of spheres. Its steps come from truncated conjugate gradients, preconditioned by ‖g_i‖, the exact
diagonal blocks of the Hessian. A step costs some dozens of products A @ V.
"""

from __future__ import annotations

import numpy as np

from hashlearn.bqp.operators import Operator
from hashlearn.bqp.solution import Run
from hashlearn.core.arrays import FloatArray

MAX_NEWTON_STEPS = 60
MAX_CG_STEPS = 200


def newton_steps(A: Operator, V: FloatArray, target: float, scale: float, run: Run) -> FloatArray:
    """Trust-region Newton steps until the relative gradient is below ``target``; returns the new V."""
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
            break
        step, predicted, at_edge = _truncated_cg(A, V, y, gradient, d, radius, min(0.1, size), run)
        trial = V + step
        normalize(trial)
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
    return V


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


def normalize(V: FloatArray) -> None:
    """Scale every row to length 1, in place."""
    V /= np.linalg.norm(V, axis=1, keepdims=True)
