"""Clarabel and SCS: general conic solvers, each given the side of the relaxation that suits it better.

Clarabel (interior point) gets min Σd, A + Diag(d) ⪰ 0, with only n free variables; it still forms a dense
block of (n(n+1)/2)² numbers for the cone, because it is not made for one large cone. SCS is a first-order
method (ADMM), here for completeness: each iteration is an n × n eigendecomposition, and on the side of X it
needs a tenth of the iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.bqp.certificate import certified_bound, certified_gap
from benchmarks.bqp.peers.base import Answer, FloatArray, GaveUp, Peer, scaled_dense
from hashlearn.bqp import Structured

ROOT2 = np.sqrt(2.0)


class Clarabel(Peer):
    name = "clarabel"
    kind = "interior point"
    package = "clarabel"
    excluded = "forming A and its constraint matrix"

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        import clarabel

        dense, scale = scaled_dense(A)
        n = A.n
        # Upper triangle by columns, which is the lower triangle by rows.
        G, h = _cone_form(dense, np.tril_indices(n))
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_rel = tol
        begin()
        started = time.perf_counter()
        solver = clarabel.DefaultSolver(
            sp.csc_matrix((n, n)), np.ones(n), G, h, [clarabel.PSDTriangleConeT(n)], settings
        )
        solution = solver.solve()
        seconds = time.perf_counter() - started
        if str(solution.status) not in ("Solved", "AlmostSolved"):
            raise GaveUp(f"failed: status {solution.status}")
        return Answer(-scale * solution.obj_val_dual, scale * np.asarray(solution.x), seconds)


class SCS(Peer):
    name = "scs"
    kind = "first order"
    package = "scs"
    excluded = "forming A and its constraint matrix; checking the certificate between restarts"

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        """Tighten its tolerance, continuing where it stopped, until the certified gap is reached."""
        import scs

        dense, scale = scaled_dense(A)
        n = A.n
        # Lower triangle by columns, which is the upper triangle by rows.
        diagonal, triangle = _cone_form(dense, np.triu_indices(n))
        del dense
        G = sp.vstack([-diagonal.T, -sp.identity(len(triangle))], format="csc")
        right = np.concatenate([np.ones(n), np.zeros(len(triangle))])
        problem, cone = {"A": G, "b": right, "c": n * triangle}, {"z": n, "s": [n]}
        begin()
        seconds, warm, eps = 0.0, {}, 2.0 * tol
        while seconds < limit:
            started = time.perf_counter()
            solver = scs.SCS(
                problem,
                cone,
                verbose=False,
                eps_abs=0.0,
                eps_rel=eps,
                max_iters=10**7,
                time_limit_secs=limit - seconds,
            )
            solution = solver.solve(warm_start=bool(warm), **warm)
            seconds += time.perf_counter() - started
            value, dual = scale / n * solution["info"]["pobj"], scale / n * solution["y"][:n]
            if certified_gap(value, certified_bound(A, dual)) <= tol:
                return Answer(value, dual, seconds)
            warm, eps = {key: solution[key] for key in "xys"}, eps / 3.0
        raise GaveUp(f"time limit {limit:g} s")


def _cone_form(A: FloatArray, triangle: tuple[NDArray[np.intp], ...]) -> tuple[sp.csc_matrix, FloatArray]:
    """G and h of G d + s = h, s the scaled triangle of A + Diag(d)."""
    rows, columns = triangle
    n = len(A)
    h = A[rows, columns] * np.where(rows == columns, 1.0, ROOT2)
    places = np.flatnonzero(rows == columns)
    return sp.csc_matrix((-np.ones(n), (places, np.arange(n))), shape=(len(h), n)), h
