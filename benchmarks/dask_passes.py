"""The coefficients of docs/scale.md: core-seconds of each kind of pass, and the scheduler's share of a task.

    python -m benchmarks.dask_passes --folder SCRATCH --gigabytes 1

Core-seconds are the CPU time of the task's own thread, so that a busy machine changes them little; the time of a task
beyond them is wall-clock. The rows are those of `benchmarks.dask_scale`. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.dask_scale import N_FEATURES, write_rows
from hashlearn.distributed.distance_codes import begin, propose, unit_factor
from hashlearn.distributed.executors import OnDask
from hashlearn.distributed.hash_functions import cross_moments
from hashlearn.distributed.moments import merged_moments, moments, unit_gram
from hashlearn.distributed.row_blocks import as_table
from hashlearn.inference.passes import Step

N_BITS, RANK = 32, 64


def timed_load(block) -> float:
    began = time.thread_time()
    block.load()
    return time.thread_time() - began


def timed_moments(rows):
    began = time.thread_time()
    found = moments(rows)
    return time.thread_time() - began, found


def timed_gram(rows, mean) -> float:
    began = time.thread_time()
    unit_gram(rows, mean, 1.0)
    return time.thread_time() - began


def timed_factor(rows, mean, directions) -> float:
    began = time.thread_time()
    unit_factor(rows, mean, 1.0, directions)
    return time.thread_time() - began


def timed_cross(rows, mean) -> float:
    codes = np.random.default_rng(0).integers(0, 256, (len(rows), N_BITS // 8)).astype(np.uint8)
    began = time.thread_time()
    cross_moments(rows, codes, np.arange(N_BITS), N_BITS, mean)
    return time.thread_time() - began


def timed_propose(factor, codes, step, repeats):
    began = time.thread_time()
    found = propose(factor, codes, step, N_BITS, repeats)
    return time.thread_time() - began, found


def nothing(factor) -> int:
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    options = parser.parse_args()

    from distributed import Client, LocalCluster

    files, n = write_rows(options.folder / "rows", options.gigabytes)
    table = as_table(files, 1 << 17)
    gigabytes = n * N_FEATURES * 4 / 1e9
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="3GB") as cluster,
        Client(cluster) as client,
    ):
        executor = OnDask(table, client)
        loads = client.gather([client.submit(timed_load, block, pure=False) for block in table.blocks])
        parts = executor.map(timed_moments, executor.rows)
        known = parts[0][1]
        for _, part in parts[1:]:
            known = merged_moments(known, part)
        directions = np.linalg.eigh(known.scatter)[1][:, ::-1][:, :RANK]
        found = {
            "read_core_seconds_per_gb": sum(loads) / gigabytes,
            "moments_core_seconds_per_gb": sum(part[0] for part in parts) / gigabytes,
            "unit_gram_core_seconds_per_gb": sum(executor.map(timed_gram, executor.rows, known.mean)) / gigabytes,
            "factor_core_seconds_per_gb": sum(executor.map(timed_factor, executor.rows, known.mean, directions))
            / gigabytes,
            "cross_core_seconds_per_gb": sum(executor.map(timed_cross, executor.rows, known.mean)) / gigabytes,
        }
        executor.keep(unit_factor, RANK, known.mean, 1.0, directions)
        begun = executor.map(begin, executor.factors, np.eye(RANK, N_BITS), np.zeros(N_BITS))
        found |= bit_passes(executor, begun, n)
        found["milliseconds_per_task"] = overhead(client)
    print(json.dumps({name: round(value, 4) for name, value in found.items()}, indent=1))


def bit_passes(executor, begun, n: int) -> dict[str, float]:
    """CPU time of a pass with the present bit alone, and with a candidate beside it, over bits from a PCA start."""
    products = sum(part[1] for part in begun)
    codes, seconds = [part[0] for part in begun], {False: [], True: []}
    for bit in range(8):
        weights = np.r_[np.ones(N_BITS), np.full(RANK, -float(N_BITS))]
        weights[bit] = 0.0
        t = products[bit]
        candidate = (-weights * t, t) if bit % 2 else (None, None)
        step = Step(bit, weights, t, *candidate)
        each = [(block,) for block in codes]
        parts = executor.map(timed_propose, executor.factors, step, float(len(codes)), each=each)
        seconds[bool(bit % 2)].append(sum(part[0] for part in parts))
    return {
        "bit_pass_core_microseconds_per_row": 1e6 * float(np.median(seconds[False])) / n,
        "bit_pass_with_candidate_core_microseconds_per_row": 1e6 * float(np.median(seconds[True])) / n,
    }


def overhead(client, blocks: int = 400) -> float:
    """Wall-clock milliseconds of a task that does nothing."""
    rows = np.tile(np.arange(4.0, dtype=np.float32), (8 * blocks, 1))
    rows[::2] += 1.0
    executor = OnDask(as_table(rows, 8), client)
    executor.keep(unit_factor, 4, np.zeros(4), 1.0, np.eye(4))
    best = np.inf
    for _ in range(5):
        began = time.perf_counter()
        executor.map(nothing, executor.factors)
        best = min(best, time.perf_counter() - began)
    return 1e3 * best / blocks


if __name__ == "__main__":
    main()
