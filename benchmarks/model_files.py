"""Model files: how fast a large one loads, verified, against reading its bytes. `benchmarks.fuzz` mutates them.

python -m benchmarks.model_files --megabytes 100            load against read, in turns, files in the page cache
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hashlearn import TwoStepHasher, load
from hashlearn.hash_functions import KernelExpansion, every_bit

N_FEATURES, N_BITS = 784, 32


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return time_loading(Path(folder) / "large.hashlearn", arguments.megabytes, arguments.rounds)


def time_loading(path: Path, megabytes: float, rounds: int) -> int:
    large_model(megabytes).save(path)

    def into_memory() -> None:
        with open(path, "rb", buffering=0) as file:
            file.readinto(memoryview(np.empty(path.stat().st_size, dtype=np.uint8)))

    contenders: dict[str, Callable[[], Any]] = {
        "read the bytes into an array": into_memory,
        "Path.read_bytes": path.read_bytes,
        "load, verified": lambda: load(path),
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            times[name].append(time.perf_counter() - start)
    reference = float(np.median(times["read the bytes into an array"]))
    print(f"{path.stat().st_size / 1e6:.1f} MB, {rounds} rounds in turns, medians")
    for name, seconds in times.items():
        middle = float(np.median(seconds))
        print(f"{name:32} {1e3 * middle:8.1f} ms  {middle / reference:5.2f} x  (best {1e3 * min(seconds):.1f} ms)")
    return 0


def large_model(megabytes: float) -> TwoStepHasher:
    """A hasher with as many support vectors as fill the file; nothing is learned."""
    rng = np.random.default_rng(0)
    m = int(megabytes * 1e6 / (4 * N_FEATURES + 8 * N_BITS))
    hasher = TwoStepHasher(n_bits=N_BITS, random_state=0)
    points, coefficients = rng.standard_normal((m, N_FEATURES), dtype=np.float32), rng.standard_normal((m, N_BITS))
    hasher.hash_functions_ = KernelExpansion(points, 1e-3, coefficients, np.zeros(N_BITS), every_bit(N_BITS), "large")
    hasher.n_features_in_, hasher.n_samples_fit_ = N_FEATURES, m
    return hasher


if __name__ == "__main__":
    raise SystemExit(main())
