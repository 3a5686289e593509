"""Solvers of max-cut for `cut_race`: ours, dwave-samplers, MQLib. Each runs in a process of its own, on one thread.

``python -m benchmarks.bqp.cut_solvers SOLVER GRAPH SEED SECONDS [MQLIB]`` prints the cut and the seconds as JSON.
Reading or making the graph, building the other package's model, compiling and calibrating are not timed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.bqp.graphs import KINDS, cut
from benchmarks.bqp.mnist import DataMissing, data_file
from hashlearn import bqp

# The untimed runs that tell how long a sweep of dwave-samplers takes: first a number of sweeps, then of seconds.
CALIBRATION_SWEEPS, CALIBRATION_SECONDS = 50, 2.0
# MQLib's heuristics check the clock rarely on large graphs. One that is this many times over the limit is ended.
OVERTIME = 3.0

Result = dict[str, Any]
Solver = Callable[[sp.csr_array, int, float, str], Result]


def load(name: str) -> sp.csr_array:
    """The weights of a file such as "G22", or of a generated graph such as "torus ±1:3000:0" (kind:nodes:seed)."""
    if ":" in name:
        kind, n, seed = name.split(":")
        return KINDS[kind](int(n), int(seed))
    try:
        path = data_file("bqp", f"{name}.txt")
    except DataMissing:
        path = data_file("bqp-more", f"{name}.txt")
    operator = bqp.read_problem(path).operator
    assert operator.is_sparse
    matrix = operator.sparse
    return sp.csr_array(np.rint(matrix / np.abs(matrix.data).min()))  # files store a quarter of each weight


def ours(W: sp.csr_array, seed: int, seconds: float, _: str) -> Result:
    """`LocalSearch` with its defaults."""
    A = bqp.as_operator(W)
    for scale in (1.0, 0.3):  # both precisions of the weights
        bqp.solve(scale * sp.csr_array(KINDS["torus ±1"](900, 1)), "local_search", time_limit=0.3, random_state=0)
    begun = time.perf_counter()
    solution = bqp.solve(A, "local_search", time_limit=seconds, random_state=seed)
    used = time.perf_counter() - begun
    return {"cut": cut(W, solution.x), "seconds": used, "engine": solution.details.get("engine", "")}


def dwave_annealing(reads: int) -> Solver:
    """SimulatedAnnealingSampler with its default temperatures: about this many anneals fill the time."""

    def solve(W: sp.csr_array, seed: int, seconds: float, _: str) -> Result:
        from dwave.samplers import SimulatedAnnealingSampler

        model, sampler = _model(W), SimulatedAnnealingSampler()

        def read(sweeps: int, number: int = 0) -> tuple[float, float]:
            begun = time.perf_counter()
            found = sampler.sample(model, num_reads=1, num_sweeps=sweeps, seed=1000 * seed + number)
            used = time.perf_counter() - begun
            return _best_cut(W, found), used

        read(1)
        guess = read(CALIBRATION_SWEEPS)[1] / CALIBRATION_SWEEPS
        trial = max(CALIBRATION_SWEEPS, int(CALIBRATION_SECONDS / guess))
        sweeps = max(1, int(seconds / reads * trial / read(trial)[1]))
        cuts, used = [], 0.0
        while not cuts or used + 0.5 * used / len(cuts) < seconds:
            cut_of_read, taken = read(sweeps, len(cuts))
            cuts.append(cut_of_read)
            used += taken
        return {"cut": max(cuts), "seconds": used, "reads": len(cuts), "sweeps": sweeps}

    return solve


def dwave_tabu(W: sp.csr_array, seed: int, seconds: float, _: str) -> Result:
    """TabuSampler with its defaults."""
    from dwave.samplers import TabuSampler

    model = _model(W)
    begun = time.perf_counter()
    found = TabuSampler().sample(model, num_reads=1, timeout=int(1000 * seconds), seed=seed)
    return {"cut": _best_cut(W, found), "seconds": time.perf_counter() - begun}


def mqlib(heuristic: str) -> Solver:
    """A heuristic of MQLib. It tells when it found which value, so only those within the time count."""

    def solve(W: sp.csr_array, seed: int, seconds: float, program: str) -> Result:
        upper = sp.coo_array(sp.triu(W, 1))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.txt"
            with path.open("w") as file:
                file.write(f"{W.shape[0]} {upper.nnz}\n")
                edges = zip(upper.row + 1, upper.col + 1, upper.data, strict=True)
                file.writelines(f"{i} {j} {w:g}\n" for i, j, w in edges)
            command = [program, "-h", heuristic, "-fM", str(path), "-r", f"{seconds:g}", "-s", str(seed + 1), "-nv"]
            answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=OVERTIME * seconds)
        history = answer.stdout.strip().rpartition("[")[2].rstrip("]")
        found = [tuple(map(float, entry.split(":"))) for entry in history.split(";")]
        return {"cut": max(value for value, when in found if when <= seconds), "seconds": seconds}

    return solve


OURS = "hashlearn local_search"
SOLVERS: dict[str, Solver] = {
    OURS: ours,
    "dwave annealing, 1 read": dwave_annealing(1),
    "dwave annealing, 16 reads": dwave_annealing(16),
    "dwave tabu": dwave_tabu,
}
HEURISTICS = ("BURER2002", "PALUBECKIS2006", "FESTA2002VNSPR")
MQLIB: dict[str, Solver] = {f"MQLib {heuristic}": mqlib(heuristic) for heuristic in HEURISTICS}


def _model(W: sp.csr_array) -> Any:
    import dimod

    upper = sp.coo_array(sp.triu(W, 1))
    n = W.shape[0]
    return dimod.BinaryQuadraticModel.from_numpy_vectors(
        np.zeros(n), (upper.row, upper.col, upper.data), 0.0, dimod.SPIN, variable_order=range(n)
    )


def _best_cut(W: sp.csr_array, found: Any) -> float:
    order = np.argsort(found.variables)
    return max(cut(W, signs) for signs in found.record.sample[:, order])


def main() -> None:
    """Run one solver on one graph."""
    solver, graph, seed, seconds, *program = sys.argv[1:]
    result = (SOLVERS | MQLIB)[solver](load(graph), int(seed), float(seconds), *program or [""])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
