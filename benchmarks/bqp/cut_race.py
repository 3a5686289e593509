"""Max-cut at equal wall seconds, one thread each: ours against dwave-samplers, and MQLib where its binary is given.

    python -m benchmarks.bqp.cut_race --seconds 15 --mqlib PATH --json FILE

All solvers take turns on one graph, each in a process of its own (`benchmarks.bqp.cut_solvers`). A cut counts as its
share of the best value known: published, or found by any solver here. Graphs are files of the Gset collection in
``$HASHLEARN_DATA``, and graphs of the same kinds made from a seed. The search was tuned on
seeds from 100 on, and looked at on G14, G22, G32, G51 and G60 meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bqp.cut_solvers import MQLIB, SOLVERS
from benchmarks.bqp.graphs import KINDS
from benchmarks.claims import recording

# The largest cuts published for files of the Gset collection.
BEST_KNOWN = {"G1": 11624, "G11": 564, "G14": 3064, "G22": 13359, "G32": 1410, "G43": 6660, "G51": 3848, "G60": 14188}
SIZES = (1000, 5000, 20_000)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "HASHLEARN_NUM_THREADS")
# Making the largest graph, compiling and calibrating take less than this many seconds.
PREPARATION = 120.0


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bqp.cut_race", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of wall-clock time for each solver on each graph")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each solver on each graph")
    parser.add_argument("--graphs", nargs="*", help='such as G22 or "torus ±1:3000:0" (kind:nodes:seed)')
    parser.add_argument("--solvers", nargs="*", help="only these (default: all that are there)")
    parser.add_argument("--mqlib", metavar="PATH", help="the binary of MQLib")
    parser.add_argument("--stored", nargs="*", type=Path, default=[], help="results of earlier runs, for one table")
    recording.add_option(parser)
    options = parser.parse_args(arguments)
    known = SOLVERS | (MQLIB if options.mqlib else {})
    solvers = options.solvers or list(known)
    unknown = [solver for solver in solvers if solver not in known]
    if unknown:
        parser.error(f"unknown solvers {unknown}; choose from {list(known)}")
    cuts: dict[str, dict[str, list[float]]] = {}
    for path in options.stored:
        cuts |= json.loads(path.read_text(encoding="utf-8"))["values"]["cuts"]
    if options.graphs or not options.stored:
        graphs = options.graphs or [*BEST_KNOWN, *(f"{kind}:{n}:0" for kind in KINDS for n in SIZES)]
        cuts |= {graph: _race(graph, solvers, options) for graph in graphs}
    graphs, solvers = list(cuts), list(next(iter(cuts.values())))
    best = {g: max(BEST_KNOWN.get(g, -np.inf), *(max(c, default=-np.inf) for c in cuts[g].values())) for g in graphs}
    print("\nMean and worst share of the best value, in percent:")
    table = recording.Table("solver", *(groups := _groups(graphs)))
    values: dict[str, Any] = {"cuts": cuts, "best": best}
    for solver in solvers:
        table.row(solver, *(_shares([(cuts[g][solver], best[g]) for g in members]) for members in groups.values()))
    table.record(options.json, values)


def _race(graph: str, solvers: list[str], options: argparse.Namespace) -> dict[str, list[float]]:
    """The cuts of each solver on one graph, one for each seed."""
    found: dict[str, list[float]] = {solver: [] for solver in solvers}
    for seed in range(options.seeds):
        for solver in solvers:
            result = measured(solver, graph, seed, options)
            if result is not None:
                found[solver].append(result["cut"])
            print(f"{graph} | {solver} | seed {seed} | {result or 'no result'}", file=sys.stderr, flush=True)
    return found


def measured(solver: str, graph: str, seed: int, options: argparse.Namespace) -> dict[str, Any] | None:
    command = [sys.executable, "-m", "benchmarks.bqp.cut_solvers", solver, graph, str(seed), str(options.seconds)]
    command += [str(Path(options.mqlib).resolve())] if solver in MQLIB else []
    environment = os.environ | dict.fromkeys(THREADS, "1")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=4 * options.seconds + PREPARATION
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        print(done.stderr[-500:], file=sys.stderr)
        return None
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _groups(graphs: list[str]) -> dict[str, list[str]]:
    """Graphs by kind; the files of the Gset collection are one group."""
    groups: dict[str, list[str]] = defaultdict(list)
    for graph in graphs:
        groups[graph.partition(":")[0] if ":" in graph else "Gset"].append(graph)
    return dict(groups)


def _shares(results: list[tuple[list[float], float]]) -> str:
    """Mean and worst over all runs. Graphs on which the solver never ended are counted in brackets."""
    shares = [100.0 * cut / best for cuts, best in results for cut in cuts]
    missing = sum(not cuts for cuts, _ in results)
    cell = f"{np.mean(shares):.2f} / {min(shares):.2f}" if shares else "–"
    return cell + (f" ({missing} without a result)" if missing else "")


if __name__ == "__main__":
    main()
