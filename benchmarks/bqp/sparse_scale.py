"""The relaxation of large sparse graphs: ``python -m benchmarks.bqp.sparse_scale torus 20000``, ``… regular 1000000``.

Every solver runs in a process of its own, which reports seconds, processor seconds and peak memory (RSS). The gap of
`sdr` is proven. The peers prove nothing, so their values are compared with the bound of `sdr`: plain mixing (Wang,
Chang and Kolter 2017, its own stopping rule: the relative fall in one sweep) and pymanopt's conjugate gradients.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.bqp.graphs import random_graph, regular_graph, square_torus
from benchmarks.claims.recording import Table, add_option

GRAPHS = {
    "torus": square_torus,
    "regular": regular_graph,
    "random": lambda n, seed: random_graph(n, 20.0, seed),
}
COLUMNS = ("solver", "seconds", "CPU seconds", "peak MiB", "relaxation value", "bound", "gap")
STOP = 1e-7  # of plain mixing: the relative fall in a sweep


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", choices=GRAPHS)
    parser.add_argument("n", type=int)
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each peer")
    parser.add_argument("--solvers", nargs="*", default=["sdr", "mixing", "pymanopt-cg"], choices=SOLVERS)
    parser.add_argument("--one", choices=SOLVERS, help=argparse.SUPPRESS)
    add_option(parser)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options)))
        return
    table = Table(*COLUMNS)
    bound = None
    for name in options.solvers:
        result = in_process(name, options)
        bound = result.get("bound", bound)
        if "value" not in result:
            table.row(name, result["failed"], *["–"] * (len(COLUMNS) - 2))
            continue
        gap = f"{(result['value'] - bound) / abs(bound):.2e}" if bound is not None else "–"
        own = f"{result['bound']:.10g}" if "bound" in result else "–"
        numbers = (f"{result['seconds']:.1f}", f"{result['cpu']:.1f}", f"{result['peak']:.0f}")
        table.row(name, *numbers, f"{result['value']:.10g}", own, gap)
    table.record(options.json)


def in_process(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The result of one solver, or why there is none."""
    command = [sys.executable, "-m", "benchmarks.bqp.sparse_scale", options.graph, str(options.n), "--one", name]
    command += ["--gap", str(options.gap), "--seed", str(options.seed), "--limit", str(options.limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:80]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """One solver on the graph, after a small graph that compiles what it needs."""
    solver = SOLVERS[options.one]
    solver(GRAPHS[options.graph](200, 1), options)
    W = GRAPHS[options.graph](options.n, options.seed)
    started, cpu = time.perf_counter(), time.process_time()
    result = solver(W, options)
    result |= {"seconds": time.perf_counter() - started, "cpu": time.process_time() - cpu}
    return result | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0}


def sdr(W: sp.csr_array, options: argparse.Namespace) -> dict[str, Any]:
    """Ours: relaxation, bound, rounding and flips."""
    from hashlearn import bqp

    solver = bqp.SemidefiniteRelaxation(tol=options.gap, proof_limit=0, n_draws=8, polish=2)
    solution = bqp.solve(W, solver, random_state=0)
    value, gap = (float(solution.details[f"relaxation_{name}"]) for name in ("value", "gap"))
    return {"value": value, "bound": value / (1.0 - gap)}  # before it is raised to a value that integers can have


def mixing(W: sp.csr_array, options: argparse.Namespace) -> dict[str, Any]:
    """Plain mixing: v_i ← −g_i/‖g_i‖ in order, with √(2n) columns at most 64, until a sweep gains less than `STOP`."""
    from hashlearn.bqp.sdr.steps import _sweep

    n = W.shape[0]
    V = np.random.default_rng(0).standard_normal((n, min(int(np.sqrt(2 * n)) + 1, 64)))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    zeros, norms, order = np.zeros(n), np.zeros(n), np.arange(n)
    indices, pointers = W.indices.astype(np.int64), W.indptr.astype(np.int64)
    started = time.perf_counter()
    while time.perf_counter() - started < options.limit:
        if _sweep(W.data, indices, pointers, zeros, V, norms, 1.0, order) <= STOP * norms.sum():
            break
    return {"value": float(np.sum(V * (W @ V)))}


def pymanopt_cg(W: sp.csr_array, options: argparse.Namespace) -> dict[str, Any]:
    """pymanopt's conjugate gradients on unit rows, cost and gradient by hand, at the same number of columns."""
    import pymanopt
    from pymanopt.manifolds import Oblique
    from pymanopt.optimizers import ConjugateGradient

    n = W.shape[0]
    manifold = Oblique(max(16, 8 * int(np.ceil(n ** (1.0 / 3.0) / 8.0))), n)

    @pymanopt.function.numpy(manifold)
    def cost(point: Any) -> float:
        return float(np.vdot(point, (W @ point.T).T))

    @pymanopt.function.numpy(manifold)
    def gradient(point: Any) -> Any:
        return 2.0 * (W @ point.T).T

    np.random.seed(0)  # noqa: NPY002 — pymanopt draws its start from the global state
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient)
    tolerance = 1e-3 * np.sqrt(n)
    optimizer = ConjugateGradient(
        max_time=options.limit, max_iterations=10**6, min_gradient_norm=tolerance, verbosity=0
    )
    return {"value": float(optimizer.run(problem).cost)}


SOLVERS = {"sdr": sdr, "mixing": mixing, "pymanopt-cg": pymanopt_cg}

if __name__ == "__main__":
    main()
