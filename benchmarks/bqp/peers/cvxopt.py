"""CVXOPT (Andersen, Dahl, Vandenberghe): its own interior point, with a KKT solver made for this problem.

Its general one would form an n² × n matrix. With M = R⁻ᵀR⁻¹ of the scaling, the Schur complement of this
relaxation is M∘M, so that an iteration costs O(n³) like that of the specialised programs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as la

from benchmarks.bqp.peers.base import Answer, FloatArray, GaveUp, Peer, scaled_dense
from hashlearn.bqp import Structured


class CVXOPT(Peer):
    name = "cvxopt"
    kind = "interior point"
    package = "cvxopt"
    excluded = "forming A"

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        from cvxopt import matrix, solvers

        dense, scale = scaled_dense(A)
        n = A.n
        h = matrix(dense.reshape(-1, 1))
        # The certificate judges feasibility; a tighter feastol than the gap only makes it stall.
        solvers.options.update({"show_progress": False, "reltol": tol, "abstol": 1e-9, "feastol": tol})
        begin()
        started = time.perf_counter()
        result = solvers.conelp(
            matrix(1.0, (n, 1)), _minus_diagonal(n), h, {"l": 0, "q": [], "s": [n]}, kktsolver=_kkt_solver(n)
        )
        seconds = time.perf_counter() - started
        if result["status"] != "optimal":
            raise GaveUp(f"failed: status {result['status']}")
        return Answer(-scale * result["dual objective"], scale * np.asarray(result["x"]).ravel(), seconds)


def _minus_diagonal(n: int) -> Callable[..., None]:
    """G of Gx + s = A: G x = −Diag(x), in the form that conelp calls, y ← α G x + β y or its transpose."""
    from cvxopt import blas

    def apply(x: Any, y: Any, alpha: float = 1.0, beta: float = 0.0, trans: str = "N") -> None:
        blas.scal(beta, y)
        if trans == "N":
            y[:: n + 1] -= alpha * x
        else:
            y -= alpha * x[:: n + 1]

    return apply


def _kkt_solver(n: int) -> Callable[..., Any]:
    """Solve Gᵀu_z = b_x, G u_x − WᵀW u_z = b_z for the scaling W: one Cholesky factorisation of M∘M."""
    from cvxopt import matrix

    def factor(W: Any) -> Callable[[Any, Any, Any], None]:
        rti = np.asarray(W["rti"][0])
        M = rti @ rti.T
        cholesky = np.linalg.cholesky(M * M)  # NumPy's, like the products: one pool of BLAS threads

        def solve(x: Any, y: Any, z: Any) -> None:
            Z = _symmetric(np.asarray(z).reshape(n, n, order="F"))
            right = np.asarray(x).ravel() - np.einsum("ij,ij->i", M @ Z, M)
            u = la.cho_solve((cholesky, True), right, check_finite=False)
            x[:] = matrix(u)
            Z[np.diag_indices(n)] += u
            z[:] = matrix((-(rti.T @ Z @ rti)).ravel(order="F"))

        return solve

    return factor


def _symmetric(L: FloatArray) -> FloatArray:
    """conelp keeps symmetric matrices in their lower triangles."""
    lower = np.tril(L, -1)
    return lower + lower.T + np.diag(np.diag(L))
