"""The relaxation (10) of a small problem by a primal-dual interior point: Helmberg, Rendl, Vanderbei, Wolkowicz 1996.

Primal X ⪰ 0 with unit diagonal and dual Z = A − Diag(y) ⪰ 0 are feasible from the first step on, so every step has a
bound. A step linearizes X Z = μI, which leaves one n × n system, (X ∘ Z⁻¹) Δy = 1 − μ diag(Z⁻¹). O(n³) each, 10
to 20 of them for any tolerance: dense problems in which large parts cancel, as those of classes, are its strength.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as la

from hashlearn.bqp.eigen import CheckTime, no_check
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.sdr.certificate import factored_bound
from hashlearn.bqp.sdr.rounding import Relaxation, Tolerance
from hashlearn.bqp.sdr.steps import unit_rows
from hashlearn.core.arrays import FloatArray

MOST_STEPS = 60
GAP_SHARE = 0.3  # of the tolerance; the rest is for the margins of the proof
SHORTER, INSIDE = 0.8, 0.95  # factors of a step that would leave the cone


def relax_small(A: Operator, tolerance: Tolerance, check_time: CheckTime = no_check) -> Relaxation:
    """Solve (10) for a small A of any kind, which is written out."""
    array = A.toarray()
    size = max(float(np.abs(array).sum()) / A.n, 1e-300)
    X, y = _central_path(array / size, replace(tolerance, scale=tolerance.scale / size), check_time)
    value = float((array * X).sum())
    bound = factored_bound(A, size * y, np.random.default_rng(0), check_time, tolerance.enough(value)).bound
    if A.is_low_rank and not (A.weights < 0.0).any():
        bound = max(bound, 0.0)  # A ⪰ 0
    lengths, vectors = la.eigh(X, check_finite=False)
    V = vectors * np.sqrt(np.maximum(lengths, 0.0))
    V = unit_rows(np.ascontiguousarray(V[:, lengths > 1e-12 * lengths[-1]]))
    return Relaxation(A, value, bound, V.shape[1], "cholesky", unit_rows=V)


def _central_path(A: FloatArray, tolerance: Tolerance, check_time: CheckTime) -> tuple[FloatArray, FloatArray]:
    """``(X, y)`` whose gap trace(XZ) = trace(AX) − Σy is a share of the tolerance."""
    n = len(A)
    X = np.eye(n)
    y = A.diagonal() - 1.1 * (np.abs(A).sum(axis=1) - np.abs(A.diagonal())) - 0.1
    Z = A - np.diag(y)
    mu = float(Z.trace()) / (2.0 * n)
    for _ in range(MOST_STEPS):
        check_time()
        inverse = la.inv(Z, check_finite=False)
        dy = la.solve(X * inverse, 1.0 - mu * inverse.diagonal(), assume_a="pos", check_finite=False)
        dX = mu * inverse - X + (X * dy) @ inverse
        dX = 0.5 * (dX + dX.T)
        primal, dual = _step_length(X, dX), _step_length(Z, -np.diag(dy))
        X, y, Z = X + primal * dX, y + dual * dy, Z - dual * np.diag(dy)
        gap, value = float((X * Z).sum()), float((A * X).sum())
        if tolerance.met(value, value - gap / GAP_SHARE):
            break
        mu = gap / n * (0.1 if primal + dual > 1.8 else 0.5)
    return X, y


def _step_length(S: FloatArray, dS: FloatArray) -> float:
    """A length for which S + length · dS stays positive definite."""
    length = 1.0
    while length > 1e-8:
        try:
            la.cholesky(S + length * dS, check_finite=False)
        except la.LinAlgError:
            length *= SHORTER
        else:
            return length if length == 1.0 else INSIDE * length
    return 0.0
