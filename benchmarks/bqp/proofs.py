"""Proven optima: how long branch and bound takes, how large its proofs are, how long the verifier takes, and forgeries.

The problems are bqp50-1 to 3 and bqp100-1 to 3 (Beasley, from the BiqMac library) and random graphs of 100 nodes with
weights ±1 on half of all pairs. Every proof is written to a file, read back and checked. Then the first proof with more
than one node is forged: 90 changed proofs and 10 files that end too early must be refused.

    python -m benchmarks.bqp.proofs

With ``--method auto`` it shows what the default proves of the random graphs without a time limit:

    python -m benchmarks.bqp.proofs --method auto --sizes 25 40 60 80 100
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bqp.forgeries import Forger
from benchmarks.bqp.instances import file_problem
from benchmarks.claims import recording
from hashlearn import bqp
from hashlearn.bqp.operators import Operator
from hashlearn.bqp.proof.check import check_proof, read_proof

FILES = tuple(f"bqp{n}-{k}.sparse" for n in (50, 100) for k in (1, 2, 3))
FORGERIES = 100


def signed_graph(n: int, seed: int, density: float = 0.5) -> np.ndarray:
    """Each pair is an edge with probability ``density``, of weight −1 or +1."""
    rng = np.random.default_rng(seed)
    half = np.triu((rng.random((n, n)) < density) * rng.choice([-1.0, 1.0], (n, n)), 1)
    return half + half.T


def problems(sizes: list[int], seeds: list[int]) -> Iterator[tuple[str, Operator]]:
    """Names and operators of random graphs."""
    for n in sizes:
        for seed in seeds:
            yield f"G({n}, ½) ±1, seed {seed}", bqp.as_operator(signed_graph(n, seed))


def refused(A: Operator, proof: Path, count: int, rng: np.random.Generator) -> tuple[int, list[str]]:
    """How many of ``count`` forgeries were refused, and the kinds of those that were not."""
    n_refused, missed = 0, []
    n_cut = count // 10
    for name, content in Forger(A, read_proof(proof)).forgeries(count - n_cut, rng):
        if check_proof(A, content).accepted:
            missed.append(name)
        else:
            n_refused += 1
    data = proof.read_bytes()
    for _ in range(n_cut):
        part = proof.with_name("cut")
        part.write_bytes(data[: int(rng.integers(0, len(data) - 1))])
        try:
            accepted = check_proof(A, read_proof(part)).accepted
        except ValueError:
            accepted = False
        n_refused += not accepted
        missed += ["truncated file"] * accepted
    return n_refused, missed


def main(arguments: list[str] | None = None) -> None:
    """Print the table of problems and the line about forgeries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100], help="nodes of the random graphs")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--time-limit", type=float, default=600.0)
    recording.add_option(parser)
    parser.add_argument("--method", choices=("branch_and_bound", "auto"), default="branch_and_bound")
    options = parser.parse_args(arguments)
    for method in ("branch_and_bound", "auto"):
        bqp.solve(signed_graph(40, 0), method, random_state=0)  # compiles
    if options.method == "auto":
        _table_of_auto(options)
        return
    table = recording.Table(
        "problem", "n", "value", "bound", "status", "seconds", "nodes", "proof bytes", "verifier seconds", "verdict"
    )
    values: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        forged: tuple[Operator, Path] | None = None
        n_forged = 0
        files = [(name, file_problem(name).operator) for name in FILES]
        for name, A in [*files, *problems(options.sizes, options.seeds)]:
            solution = bqp.solve(A, "branch_and_bound", random_state=0, time_limit=options.time_limit)
            cells = [name, A.n, f"{solution.value:.0f}", f"{solution.bound:.2f}", solution.status]
            cells += [f"{solution.seconds:.2f}", solution.details.get("nodes", 0)]
            if "proof" in solution.details:
                path = Path(scratch, f"{len(table.rows)}.json.gz")
                solution.details["proof"].save(path)
                started = time.perf_counter()
                verdict = check_proof(A, read_proof(path))
                cells += [path.stat().st_size, f"{time.perf_counter() - started:.2f}"]
                cells += ["accepted" if verdict.accepted else verdict.reason]
                if forged is None or (n_forged == 1 and solution.details["nodes"] > 1):
                    forged, n_forged = (A, path), solution.details["nodes"]
            else:
                cells += ["–", "–", "–"]
            table.row(*cells)
        if forged is not None:
            count, missed = refused(*forged, FORGERIES, np.random.default_rng(0))
            values = {"forgeries": FORGERIES, "refused": count}
            print(f"\n{count} of {FORGERIES} forged proofs are refused{': not ' + str(missed) if missed else ''}")
    table.record(options.json, values)


def _table_of_auto(options: argparse.Namespace) -> None:
    """Print what the default answers without a time limit."""
    table = recording.Table("problem", "n", "value", "bound", "gap %", "status", "seconds", "nodes")
    for name, A in problems(options.sizes, options.seeds):
        solution = bqp.solve(A, random_state=0)
        cells = [name, A.n, f"{solution.value:.0f}", f"{solution.bound:.2f}", f"{100.0 * solution.gap:.2f}"]
        table.row(*cells, solution.status, f"{solution.seconds:.2f}", solution.details.get("nodes", 0))
    table.record(options.json, {})


if __name__ == "__main__":
    main()
