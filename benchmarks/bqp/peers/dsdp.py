"""DSDP (Benson and Ye): dual-scaling interior point, as Debian's ``dsdp`` and inside PyPI's ``cvxopt``.

It works on the dual alone and sees that the constraints have rank one, which is the structure of this
relaxation.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.bqp.peers.base import Answer, GaveUp, Peer, scaled_dense
from benchmarks.bqp.peers.programs import debian_version, find_program, read_numbers, run_program, write_sdpa
from hashlearn.bqp import Structured


class DSDP(Peer):
    name = "dsdp"
    kind = "interior point"
    package = "dsdp"
    excluded = "forming A, writing and reading files; its own 'DSDP Solve Time'"

    def version(self) -> str:
        find_program("dsdp5", self.package)
        return debian_version(self.package)

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        dense, scale = scaled_dense(A)
        with tempfile.TemporaryDirectory(prefix="dsdp") as name:
            folder = Path(name)
            write_sdpa(folder / "problem.dat-s", dense)
            del dense
            options = ["-gaptol", f"{tol:g}", "-save", "solution"]
            begin()
            output = run_program([find_program("dsdp5", self.package), "problem.dat-s", *options], folder)
            if not any(line.text.startswith("DSDP Converged") for line in output.lines):
                raise GaveUp("failed: DSDP did not converge")
            with (folder / "solution").open(encoding="ascii") as file:
                dual = read_numbers(file.readline())
        seconds = output.number("DSDP Solve Time")
        return Answer(scale * output.number("P Objective"), scale * dual, seconds, output.peak_bytes)


class DSDPInCVXOPT(Peer):
    name = "dsdp-cvxopt"
    kind = "interior point"
    package = "cvxopt"
    excluded = "forming A and its sparse constraint matrix"

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        from cvxopt import dsdp, matrix, spmatrix

        dense, scale = scaled_dense(A)
        n = A.n
        objective, ones = matrix(dense), matrix(1.0, (n, 1))
        constraint = spmatrix(-1.0, range(0, n * n, n + 1), range(n), (n * n, n))
        empty, nothing = spmatrix([], [], [], (0, n)), matrix(0.0, (0, 1))
        dsdp.options.update({"DSDP_GapTolerance": tol, "DSDP_Monitor": 0})
        begin()
        started = time.perf_counter()
        status, x, _, _, (Z,) = dsdp.sdp(ones, empty, nothing, [constraint], [objective])
        seconds = time.perf_counter() - started
        if status != "DSDP_PDFEASIBLE":
            raise GaveUp(f"failed: {status}")
        lower = np.tril(np.asarray(Z))  # the upper triangle is not filled
        value = 2.0 * float(np.vdot(lower, dense)) - float(lower.diagonal() @ dense.diagonal())
        return Answer(scale * value, scale * np.asarray(x).ravel(), seconds)
