"""pymanopt: min tr(VᵀAV) over unit rows, X = VVᵀ, by trust regions or conjugate gradients.

Cost, gradient and Hessian are written by hand. The first two peers get them on A = P diag(w) Pᵀ, the product PᵀV
shared between them, so that a step costs O(n · rank · k) as ours does: pymanopt with our knowledge of A. The third has
A as a dense array, as its users would write it who do not know that A is low rank. "At equal gap": it is run with ever
smaller gradient tolerance, always from the same random start, until the benchmark's certificate for its point reaches
the gap; only the run that reaches it is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.bqp.certificate import certified_bound, certified_gap
from benchmarks.bqp.peers.base import Answer, FloatArray, GaveUp, Peer
from hashlearn.bqp import Structured

WIDTHS = (8, 16, 32)
SMALLEST_TOLERANCE = 1e-9
SEED = 0


class _Pymanopt(Peer):
    kind = "manifold"
    package = "pymanopt"
    excluded = "runs that stopped short of the gap; the certificate; the slower of one BLAS thread and all"

    def optimizer(self, **options: Any) -> Any:
        raise NotImplementedError

    def problem(self, A: Structured, start: FloatArray) -> Any:
        return _problem(A, start)

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        for width in WIDTHS:
            start = _random_point(width, A.n)
            problem = self.problem(A, start)
            for gradient_tolerance in _tolerances():
                begin()
                point, seconds = self._run(problem, start, gradient_tolerance, limit)
                AV = A @ np.ascontiguousarray(point.T)
                value = float(np.vdot(point.T, AV))
                dual = np.linalg.norm(AV, axis=1)
                if certified_gap(value, certified_bound(A, dual)) <= tol:
                    begin()
                    with threadpool_limits(1, "blas"):
                        seconds = min(seconds, self._run(problem, start, gradient_tolerance, limit)[1])
                    return Answer(value, dual, seconds, note=f"k={width}, gradient {gradient_tolerance:.0e}")
                if seconds >= limit:
                    raise GaveUp(f"time limit {limit:g} s")
        raise GaveUp(f"failed: gap not reached with k = {WIDTHS[-1]}")

    def _run(
        self, problem: Any, start: FloatArray, gradient_tolerance: float, limit: float
    ) -> tuple[FloatArray, float]:
        optimizer = self.optimizer(
            min_gradient_norm=gradient_tolerance,
            min_step_size=0.0,
            max_iterations=10**6,
            max_time=limit,
            verbosity=0,
        )
        started = time.perf_counter()
        point = optimizer.run(problem, initial_point=start.copy()).point
        return point, time.perf_counter() - started


class TrustRegions(_Pymanopt):
    name = "pymanopt-tr"

    def optimizer(self, **options: Any) -> Any:
        from pymanopt.optimizers import TrustRegions

        return TrustRegions(**options)


class ConjugateGradient(_Pymanopt):
    name = "pymanopt-cg"

    def optimizer(self, **options: Any) -> Any:
        from pymanopt.optimizers import ConjugateGradient

        return ConjugateGradient(**options)


class TrustRegionsDense(TrustRegions):
    name = "pymanopt-tr-dense"

    def problem(self, A: Structured, start: FloatArray) -> Any:
        return _dense_problem(A.toarray(), start)


def _tolerances() -> Iterator[float]:
    """Relative gradient norms, half a decade apart."""
    tolerance = 1e-2
    while tolerance > SMALLEST_TOLERANCE:
        yield tolerance
        tolerance /= np.sqrt(10.0)


def _random_point(width: int, n: int) -> FloatArray:
    """Unit columns: pymanopt's oblique manifold keeps V transposed."""
    point = np.random.default_rng(SEED).standard_normal((width, n))
    return point / np.linalg.norm(point, axis=0)


def _problem(A: Structured, start: FloatArray) -> Any:
    """The problem, scaled so that the Euclidean gradient at the start has norm one."""
    import pymanopt
    from pymanopt.manifolds import Oblique

    manifold = Oblique(*start.shape)
    P, PT = A.P, A.P.T
    scale = 2.0 * float(np.linalg.norm(((start @ P) * A.weights) @ PT))
    weights = A.weights / scale
    shared: dict[str, Any] = {"point": None, "T": None}

    def product(point: FloatArray) -> FloatArray:
        if shared["point"] is not point:
            shared.update(point=point, T=point @ P)
        return shared["T"]

    @pymanopt.function.numpy(manifold)
    def cost(point: FloatArray) -> float:
        T = product(point)
        return float(np.einsum("kr,kr,r->", T, T, weights))

    @pymanopt.function.numpy(manifold)
    def gradient(point: FloatArray) -> FloatArray:
        return 2.0 * ((product(point) * weights) @ PT)

    @pymanopt.function.numpy(manifold)
    def hessian(point: FloatArray, tangent: FloatArray) -> FloatArray:
        return 2.0 * (((tangent @ P) * weights) @ PT)

    return pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)


def _dense_problem(A: FloatArray, start: FloatArray) -> Any:
    """The same with A as an n × n array, scaled likewise."""
    import pymanopt
    from pymanopt.manifolds import Oblique

    manifold = Oblique(*start.shape)
    A = A / (2.0 * float(np.linalg.norm(start @ A)))

    @pymanopt.function.numpy(manifold)
    def cost(point: FloatArray) -> float:
        return float(np.vdot(point, point @ A))

    @pymanopt.function.numpy(manifold)
    def gradient(point: FloatArray) -> FloatArray:
        return 2.0 * (point @ A)

    @pymanopt.function.numpy(manifold)
    def hessian(point: FloatArray, tangent: FloatArray) -> FloatArray:
        return 2.0 * (tangent @ A)

    return pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
