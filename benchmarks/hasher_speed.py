"""Fit and encode seconds of every hasher at n = 5,000 and 60,000 MNIST images, 32 bits, and the memory of fitting.

``python -m benchmarks.hasher_speed`` runs each in a process of its own, one after the other, all cores; one that is not
done after ``--limit`` seconds is stopped and shown so. Encoding is of the 10,000 test images. An array of n × n float64
would take 0.2 GB at 5,000 and 29 GB at 60,000 rows: the memory column shows that none is formed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.bqp.mnist import data_file, read_idx, training_set
from hashlearn.hashers import HASHERS

NEEDS = {"sign_codes": {"features": "pca"}}


def main() -> None:
    options = _options()
    if options.child:
        print(json.dumps(measure(options.child, options.rows[0], options.bits)))
        return
    print("| hasher | " + " | ".join(f"fit, n = {n:,} | encode 10,000 | memory" for n in options.rows) + " |")
    print("|---|" + "---|" * (3 * len(options.rows)))
    for name in options.hashers or HASHERS:
        cells = []
        for rows in options.rows:
            found = _in_process(name, rows, options)
            cells += [found] * 3 if isinstance(found, str) else _cells(found)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def measure(name: str, rows: int, n_bits: int) -> dict[str, float]:
    """Seconds of fit and of encoding the test images, and GB that were needed beyond the data."""
    X, y = training_set()
    queries = read_idx(data_file("mnist", "t10k-images-idx3-ubyte.gz"))
    queries = queries.reshape(len(queries), -1).astype(np.float32) / 255.0
    chosen = np.random.default_rng(0).permutation(len(X))[:rows]
    X, y = X[chosen].astype(np.float32) / 255.0, y[chosen]
    make: Any = HASHERS[name]
    parameters = NEEDS.get(name, {})
    small = make(n_bits=4, random_state=0, **parameters).fit(X[:300], y[:300])  # untimed: what the first call compiles
    small.encode(queries[:10])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = perf_counter()
    hasher = make(n_bits=n_bits, random_state=0, **parameters).fit(X, y)
    fitted = perf_counter()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hasher.encode(queries)
    return {"fit": fitted - started, "encode": perf_counter() - fitted, "gigabytes": (after - before) / 2**20}


def _in_process(name: str, rows: int, options: argparse.Namespace) -> dict[str, float] | str:
    command = [sys.executable, "-m", "benchmarks.hasher_speed", "--child", name]
    command += ["--rows", str(rows), "--bits", str(options.bits)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return f"> {options.limit:.0f} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1][:60]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def _cells(found: dict[str, float]) -> list[str]:
    return [f"{found['fit']:.1f} s", f"{found['encode']:.2f} s", f"{found['gigabytes']:.2f} GB"]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 60_000])
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one hasher at one size")
    parser.add_argument("--hashers", nargs="+", help="default: all")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
