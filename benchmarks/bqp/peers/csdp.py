"""CSDP (Borchers): primal-dual interior point, Debian's ``coinor-csdp``, on the system's BLAS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.bqp.peers.base import Answer, GaveUp, Peer, scaled_dense
from benchmarks.bqp.peers.programs import debian_version, find_program, read_numbers, run_program, write_sdpa
from hashlearn.bqp import Structured

# Its defaults, but for the relative gap, which it divides by |primal| + |dual| (twice what we divide by).
PARAMETERS = """axtol=1.0e-8
atytol=1.0e-8
objtol={tol:g}
pinftol=1.0e8
dinftol=1.0e8
maxiter=100
minstepfrac=0.90
maxstepfrac=0.97
minstepp=1.0e-8
minstepd=1.0e-8
usexzgap=1
tweakgap=0
affine=0
printlevel=1
perturbobj=1
fastmode=0
"""


class CSDP(Peer):
    name = "csdp"
    kind = "interior point"
    package = "coinor-csdp"
    excluded = "forming A, writing and reading files; counted from its first iteration line to its last word"

    def version(self) -> str:
        find_program("csdp", self.package)
        return debian_version(self.package)

    def solve(self, A: Structured, tol: float, limit: float, begin: Callable[[], None]) -> Answer:
        dense, scale = scaled_dense(A)
        with tempfile.TemporaryDirectory(prefix="csdp") as name:
            folder = Path(name)
            write_sdpa(folder / "problem.dat-s", dense)
            del dense
            (folder / "param.csdp").write_text(PARAMETERS.format(tol=tol / 2.0), encoding="ascii")
            begin()
            output = run_program([find_program("csdp", self.package), "problem.dat-s", "solution"], folder)
            if not any(line.text.startswith(("Success", "Partial Success")) for line in output.lines):
                raise GaveUp(f"failed: {output.lines[-1].text if output.lines else 'no output'}")
            with (folder / "solution").open(encoding="ascii") as file:
                dual = read_numbers(file.readline())
        seconds = output.last("Primal objective value").seconds - output.first("Iter:").seconds
        value = -output.number("Primal objective value")
        return Answer(scale * value, scale * dual, seconds, output.peak_bytes)
