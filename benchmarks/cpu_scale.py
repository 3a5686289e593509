"""Inference in memory as n grows: seconds, peak memory and the exponent of n, by single flips and by AL on samples.

    python -m benchmarks.cpu_scale --rows 10000,100000,1000000 --solvers passes,sampled_al

Every cell is a process of its own: rows of 128 features (float64, clusters with noise), the distance target, 32 bits,
3 sweeps. Prints one JSON object. Memory is the process's peak over the bytes of the rows, with what Python and its
packages need before there are rows taken off; ``--blocks`` runs `hashlearn.distributed.fit` in one process instead.
The names of methods, as in ``--solvers local_search,al``, give every bit's whole problem to the solver.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

N_FEATURES, N_BITS = 128, 32


def rows(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((256, N_FEATURES))
    X = rng.standard_normal((n, N_FEATURES))
    for first in range(0, n, 65_536):  # no second array of this size
        X[first : first + 65_536] += centers[rng.integers(256, size=len(X[first : first + 65_536]))]
    return X


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one_cell(n: int, solver: str, sweeps: int, blocks: bool) -> dict[str, object]:
    from hashlearn import distributed
    from hashlearn.inference import infer_codes, start_codes
    from hashlearn.targets import Distance

    warm = rows(500)
    rng = np.random.default_rng(0)
    small = Distance().build(warm, None, rng)
    infer_codes(small, start_codes("auto", warm, 8, rng, small), solver=solver, n_sweeps=1, rng=rng)  # compiles
    before = peak_bytes()
    X = rows(n)
    data = X.nbytes
    began = time.perf_counter()
    if blocks:
        hasher = distributed.fit(X, n_bits=N_BITS, solver=solver, n_sweeps=sweeps, n_workers=0, random_state=0)
        report = hasher.inference_report_
        seconds = report.seconds
    else:
        rng = np.random.default_rng(0)
        target = Distance().build(X, None, rng)
        del X
        start = start_codes("auto", target.P, N_BITS, rng, target)
        report = infer_codes(target, start, solver=solver, n_sweeps=sweeps, rng=rng)[1]
        seconds = report.seconds
    return {
        "rows": n,
        "solver": solver,
        "method": report.method,
        "inference_seconds": round(seconds, 2),
        "total_seconds": round(time.perf_counter() - began, 2),
        "peak_bytes": peak_bytes(),
        "peak_over_data": round((peak_bytes() - before) / data, 2),
        "objectives": [report.start_objective, *report.objectives],
    }


def exponent(cells: list[dict]) -> float | None:
    """Slope of log seconds over log n, by least squares."""
    if len(cells) < 2:
        return None
    n, seconds = (np.log([cell[key] for cell in cells]) for key in ("rows", "inference_seconds"))
    return round(float(np.polyfit(n, seconds, 1)[0]), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="10000,31623,100000,316228,1000000")
    parser.add_argument("--solvers", default="passes,sampled_al")
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("--cell", nargs=2, metavar=("ROWS", "SOLVER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(one_cell(int(options.cell[0]), options.cell[1], options.sweeps, options.blocks)))
        return
    cells = []
    for solver in options.solvers.split(","):
        for n in options.rows.split(","):
            command = [sys.executable, "-m", "benchmarks.cpu_scale", "--sweeps", str(options.sweeps)]
            command += ["--blocks"] * options.blocks + ["--cell", n, solver]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(done.stderr)
            cells.append(json.loads(done.stdout))
            print(f"{solver}, {n} rows: {cells[-1]['inference_seconds']} s", file=sys.stderr, flush=True)
    by_solver = {s: exponent([c for c in cells if c["solver"] == s]) for s in options.solvers.split(",")}
    print(json.dumps({"cells": cells, "exponents": by_solver, "blocks": options.blocks}, indent=1))


if __name__ == "__main__":
    main()
