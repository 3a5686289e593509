"""SDPA (Fujisawa and others): primal-dual interior point, Debian's ``sdpa`` and PyPI's ``sdpa-python``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.bqp.peers.base import Answer, GaveUp, Peer, scaled_dense
from benchmarks.bqp.peers.programs import (
    debian_version,
    find_program,
    read_numbers,
    run_program,
    threads,
    write_sdpa,
)
from hashlearn.bqp import Structured

# Its defaults, but for the relative gap and what is printed.
PARAMETERS = """100 maxIteration
1.0E-7 epsilonStar
1.0E2 lambdaStar
2.0 omegaStar
-1.0E5 lowerBound
1.0E5 upperBound
0.1 betaStar
0.2 betaBar
0.9 gammaStar
{tol:g} epsilonDash
%+10.16e xPrint
NOPRINT XPrint
NOPRINT YPrint
%+10.16e infPrint
"""


class SDPA(Peer):
    name = "sdpa"
    kind = "interior point"
    package = "sdpa"
    excluded = "forming A, writing and reading files; its own 'main loop time'"

    def version(self) -> str:
        find_program("sdpa", self.package)
        return debian_version(self.package)

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        dense, scale = scaled_dense(A)
        with tempfile.TemporaryDirectory(prefix="sdpa") as name:
            folder = Path(name)
            write_sdpa(folder / "problem.dat-s", dense)
            del dense
            (folder / "parameters").write_text(PARAMETERS.format(tol=tol), encoding="ascii")
            program = find_program("sdpa", self.package)
            files = ["-ds", "problem.dat-s", "-o", "solution", "-p", "parameters"]
            begin()
            output = run_program([program, *files, "-numThreads", str(threads())], folder)
            phase = output.last("phase.value").text.split()[-1]
            if not phase.startswith("pd"):
                raise GaveUp(f"failed: it ended in phase {phase}")
            solution = (folder / "solution").read_text(encoding="ascii").splitlines()
        dual = read_numbers(solution[solution.index("xVec = ") + 1])
        seconds = output.number("main loop time")
        return Answer(-scale * output.number("objValDual"), scale * dual, seconds, output.peak_bytes)


class SDPAPython(Peer):
    name = "sdpa-python"
    kind = "interior point"
    package = "sdpa-python"
    excluded = "forming A and converting it; its own time of the call to SDPA"

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        import sdpap

        dense, scale = scaled_dense(A)
        n = A.n
        diagonal = sp.csc_matrix((np.ones(n), (np.arange(n), np.arange(n) * (n + 1))), shape=(n, n * n))
        objective = sp.csc_matrix(dense.reshape(-1, 1))
        del dense
        options = {"epsilonDash": float(tol), "print": "no", "numThreads": threads()}
        begin()
        _, y, info, times, _ = sdpap.solve(
            diagonal, np.ones((n, 1)), objective, sdpap.SymCone(s=(n,)), sdpap.SymCone(f=n), options
        )
        if not info["phasevalue"].startswith("pd"):
            raise GaveUp(f"failed: it ended in phase {info['phasevalue']}")
        dual = -np.asarray(y.todense() if sp.issparse(y) else y, dtype=np.float64).ravel()
        return Answer(scale * info["primalObj"], scale * dual, times["sdpa"])
