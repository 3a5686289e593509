"""Seconds and memory of inferring codes: MNIST, 32 bits, three sweeps, each run in a process of its own.

``python -m benchmarks.inference_speed`` prints, for every target, size and solver, the seconds of `infer_codes` (after
an untimed small run), the peak of the process above what it held before the target was built, the objective (3) at
the end and the mean gap of the last sweep's bits. Beside it stands what one n × n float32 matrix would take. Without
``--solvers``, those that suit the target and size are run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from benchmarks.bqp.memory import current_rss, peak_rss, reset_peak
from benchmarks.bqp.mnist import training_set
from hashlearn.inference import infer_codes, start_codes
from hashlearn.targets import as_target

TARGETS = ("labels", "distance", "thresholded_distance")
MANY_ROWS = 20_000  # from here on, bits of distances are found by passes and on samples


def solvers(target: str, n: int) -> tuple[str, str, str]:
    """AL, a relaxation and single flips, in the form that suits the target and the size."""
    relaxed = "coarse_sdr" if target == "thresholded_distance" else "quick_sdr"
    if target == "distance" and n > MANY_ROWS:
        return "sampled_al", relaxed, "passes"
    return "al", relaxed, "local_search" if target == "labels" else "sweeps"


def main() -> None:
    options = _options()
    if options.one:
        print(json.dumps(_run(json.loads(options.one))))
        return
    print(f"MNIST, {options.bits} bits, {options.sweeps} sweeps from the PCA start\n")
    print("| target | n | solver | seconds | bits solved | peak MiB | n × n float32, MiB | objective | mean gap |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for n in options.sizes:
        for target in options.targets:
            for solver in options.solvers or solvers(target, n):
                task = {"n": n, "target": target, "solver": solver, "bits": options.bits, "sweeps": options.sweeps}
                print(_row(task, _measured(task, options.limit)), flush=True)


def _measured(task: dict[str, Any], limit: float) -> dict[str, Any] | str:
    command = [sys.executable, "-m", "benchmarks.inference_speed", "--one", json.dumps(task)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"over {limit:g} s"
    if done.returncode != 0:
        return f"failed: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}"
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _row(task: dict[str, Any], result: dict[str, Any] | str) -> str:
    square = 4 * task["n"] ** 2 / 2**20
    head = f"| {task['target']} | {task['n']:,} | {task['solver']} "
    if isinstance(result, str):
        return head + f"| {result} | | | {square:,.0f} | | |"
    gap = "–" if result["gap"] is None else f"{100 * result['gap']:.2f} %"
    return head + (
        f"| {result['seconds']:.1f} | {result['solved']} | {result['peak_mib']:,.0f} | {square:,.0f} "
        f"| {result['objective']:.5f} | {gap} |"
    )


def _run(task: dict[str, Any]) -> dict[str, Any]:
    pixels, labels = training_set()
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(pixels))[: task["n"]]
    X, y = pixels[chosen].astype(np.float32) / 255.0, labels[chosen]
    _infer(X[:500], y[:500], {**task, "bits": 8, "sweeps": 1})
    reset_peak()
    before = current_rss()
    seconds, report = _infer(X, y, task)
    last = [record.gap for record in report.bits[-task["bits"] :]]
    return {
        "seconds": seconds,
        "solved": len(report.bits),
        "peak_mib": (peak_rss() - before) / 2**20,
        "objective": report.final_objective,
        "gap": float(np.mean(last)) if np.isfinite(last).all() else None,
    }


def _infer(X: np.ndarray, y: np.ndarray, task: dict[str, Any]) -> tuple[float, Any]:
    """Everything between features and codes: start, target, inference."""
    rng = np.random.default_rng(1)
    started = time.perf_counter()
    target = as_target(task["target"], y if task["target"] == "labels" else None)
    start = start_codes("pca", X, task["bits"], rng)
    operator = target.build(X, y if target.needs_labels else None, rng)
    _, report = infer_codes(operator, start, solver=task["solver"], n_sweeps=task["sweeps"], rng=rng)
    return time.perf_counter() - started, report


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5_000, 60_000])
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--solvers", nargs="+")
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for one run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
