"""Model files: how fast a large one loads, verified, against reading its bytes; and what mutations do to the loader.

    python -m benchmarks.model_files --megabytes 100            load against read, in turns, files in the page cache
    python -m benchmarks.model_files --fuzz-seconds 600         mutated files: refused or right, in little memory

Fuzzing makes two kinds of files. Damaged ones (flips, cuts, insertions, edits of the header) must all be refused.
Forged ones carry right digests over wrong contents; they must be refused, or load and encode without harm. Any other
exception than `PersistenceError`, more than a second, or more memory than twice the file and ``ALLOWANCE`` fails.
"""

from __future__ import annotations

import argparse
import faulthandler
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.mutated_files import damaged, forged
from hashlearn import TwoStepHasher, load
from hashlearn.hash_functions import KernelExpansion
from hashlearn.hashers import HASHERS
from hashlearn.hashers.fitted import every_bit
from hashlearn.persistence import PersistenceError

N_FEATURES, N_BITS = 784, 32
ALLOWANCE = 32 * 2**20  # bytes of the interpreter's own that come and go
QUICK = {
    "fasthash": {"n_trees": 5},
    "alm_hashing": {"max_iter": 2},
    "nmf_hashing": {"max_iter": 5},
    "bre": {"n_pairs": 9},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--fuzz-seconds", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.fuzz_seconds > 0:
            return fuzz(Path(folder), arguments.fuzz_seconds, arguments.seed)
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
    hasher = TwoStepHasher(n_bits=N_BITS, scaling="none", random_state=0)
    hasher.scaling_ = "none"
    points, coefficients = rng.standard_normal((m, N_FEATURES), dtype=np.float32), rng.standard_normal((m, N_BITS))
    hasher.hash_functions_ = KernelExpansion(points, 1e-3, coefficients, np.zeros(N_BITS), every_bit(N_BITS), "large")
    hasher.n_features_in_, hasher.n_samples_fit_ = N_FEATURES, m
    return hasher


def fuzz(folder: Path, seconds: float, seed: int) -> int:
    faulthandler.enable()
    rng = np.random.default_rng(seed)
    models = small_models(folder)
    path, counts, failures = folder / "mutated.hashlearn", Counter[str](), []
    begin, slowest, largest = time.perf_counter(), 0.0, 0
    while time.perf_counter() - begin < seconds and not failures:
        name, original = list(models.items())[rng.integers(len(models))]
        forge = rng.random() < 0.5
        data = forged(original, rng) if forge else damaged(original, rng)
        path.write_bytes(data)
        before, start = _reset_peak_memory(), time.perf_counter()
        outcome, hasher = tried(path)
        slowest, over = max(slowest, time.perf_counter() - start), max(0, _peak_memory() - before - 2 * len(data))
        largest = max(largest, over)
        if hasher is not None:
            outcome = encoded(hasher) if forge else "unchanged" if data == original else "FAILED: loaded"
        counts[f"{'forged' if forge else 'damaged'}: {outcome}"] += 1
        if outcome.startswith("FAILED") or slowest > 1.0 or over > ALLOWANCE:
            kept = Path(tempfile.gettempdir()) / f"fuzz-failure-{name}.hashlearn"
            kept.write_bytes(data)
            failures.append(f"{name}: {outcome}, {slowest:.2f} s, {over:,} bytes over; kept as {kept}")
    print(f"{sum(counts.values())} files in {time.perf_counter() - begin:.0f} s from {len(models)} models, seed {seed}")
    for outcome, count in sorted(counts.items()):
        print(f"{count:8} {outcome}")
    print(f"slowest load {1e3 * slowest:.0f} ms; most memory beyond twice the file {largest / 2**20:.1f} MiB")
    print("\n".join(failures) or "no failure")
    return 1 if failures else 0


def small_models(folder: Path) -> dict[str, bytes]:
    """A file of every hasher, fitted on a few digits, and one of 4 MB."""
    X, y = load_digits(return_X_y=True)
    found = {"large": large_model(4.0)}
    for name, kind in HASHERS.items():
        found[name] = kind(8, **QUICK.get(name, {})).set_params(random_state=0).fit(X[:60], y[:60])
    for name, hasher in found.items():
        hasher.save(folder / name)
    return {name: (folder / name).read_bytes() for name in found}


def tried(path: Path) -> tuple[str, Any]:
    """What the loader made of it: a word, and the hasher if there is one."""
    try:
        return "loaded", load(path)
    except PersistenceError:
        return "refused", None
    except BaseException as error:
        return f"FAILED with {type(error).__name__}: {error}", None


def encoded(hasher: Any) -> str:
    """Whether a hasher from a forged file encodes, to whatever codes."""
    if hasher.n_features_in_ > N_FEATURES:
        return "loaded, wants more features than anyone has"
    with np.errstate(all="ignore"):
        try:
            codes = hasher.encode(np.ones((3, hasher.n_features_in_)))
        except Exception as error:
            return f"FAILED to encode: {type(error).__name__}: {error}"
    return "loaded, encodes" if codes.shape == (3, -(-hasher.n_bits // 8)) else f"FAILED: codes {codes.shape}"


def _reset_peak_memory() -> int:
    """Bytes in use; Linux then counts the peak from here."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_memory()


def _peak_memory() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    raise SystemExit(main())
