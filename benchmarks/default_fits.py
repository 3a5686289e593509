"""How long a fit with the defaults takes, and what it gives: a table for other solvers and hash functions too.

``python -m benchmarks.default_fits --rows 10000 100000`` learns 64 bits from sentence embeddings (CLINC150, 384 floats,
in ``$HASHLEARN_DATA``). Up to 21,500 rows are drawn; more rows are drawn with replacement and get noise. 1,000 queries
ask for their 10 nearest float neighbors among the learned rows by Hamming distance. ``--targets labels`` learns from
the intents. ``--solver quick_sdr --hash-function kernel_ridge`` are the defaults of version 0.1.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims.recording import Table, add_option
from hashlearn import TwoStepHasher, metrics
from hashlearn.experiments import datasets

N_QUERIES, N_NEIGHBORS = 1_000, 10
NOISE = 0.03  # of each entry; rows have length 1
COLUMNS = (
    "rows", "target", "method", "hash function", "seconds", "CPU seconds", "start", "inference", "objective",
    "recall@10", "model bytes",
)  # fmt: skip


def main() -> None:
    """Print a row for each number of rows and each target."""
    options = _options()
    data = datasets.load("clinc150_minilm")
    rows = data.X.astype(np.float32)
    warm = TwoStepHasher(8, target="distance", solver=options.solver, hash_function=options.hash_function)
    warm.fit(rows[:2_500])  # compiles and loads
    table = Table(*COLUMNS)
    for n in options.rows:
        X, y, queries = _drawn(rows, data.y, n, options.seed)
        neighbors = metrics.float_neighbors(queries, X, N_NEIGHBORS)
        for target in options.targets:
            table.row(*_measured(X, y, queries, neighbors, target, options))
    table.record(options.json)


def _measured(X: Any, y: Any, queries: Any, neighbors: Any, target: str, options: argparse.Namespace) -> list[str]:
    hasher = TwoStepHasher(
        options.bits,
        target=target,
        solver=options.solver,
        hash_function=options.hash_function,
        random_state=options.seed,
    )
    began, began_cpu = time.perf_counter(), time.process_time()
    hasher.fit(X, y if target == "labels" else None)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - began_cpu
    report = hasher.inference_report_
    recall = metrics.neighbor_recall(hasher.encode(queries), hasher.encode(X), neighbors, k=N_NEIGHBORS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        hasher.save(path, codes=False)
        size = path.stat().st_size
    return [
        f"{len(X):,}",
        target,
        report.method,
        hasher.hash_functions_.description,
        f"{seconds:.1f}",
        f"{cpu_seconds:.1f}",
        f"{report.start_objective:.6f}",
        f"{report.seconds:.1f} s",
        f"{report.final_objective:.6f}",
        f"{100.0 * recall:.2f}",
        f"{size:,}",
    ]


def _drawn(
    rows: NDArray[np.float32], y: NDArray[Any], n: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[np.float32]]:
    """Rows to learn from, their labels, and queries that are none of them."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    queries, rest = rows[order[:N_QUERIES]], order[N_QUERIES:]
    if n <= len(rest):
        return rows[rest[:n]], y[rest[:n]], queries
    index = rng.choice(rest, n)
    noise = rng.standard_normal((n, rows.shape[1]), dtype=np.float32)
    return rows[index] + np.float32(NOISE) * noise, y[index], queries


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--targets", nargs="+", default=["neighbors", "distance"], help="also labels, …")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--solver", default="auto", help="quick_sdr, sampled_sdr, passes, …")
    parser.add_argument("--hash-function", default="auto", help="kernel_ridge, linear_ridge, …")
    parser.add_argument("--seed", type=int, default=0)
    add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
