"""`near_duplicates` against an exact search by floats, and how often its promise is broken.

``python -m benchmarks.near_duplicates speed``     100,000 rows: seconds of both in turns, and the share that is missed
``python -m benchmarks.near_duplicates hashers``   25,000 rows: radius and candidates of several codes
``python -m benchmarks.near_duplicates validity``  3,000 rows, many seeds: how often more is missed than promised

Rows are those of CLINC150 and copies of random ones with noise of random size, so that cosines from 0.7 to 0.995 are
planted. The exact search is one float32 matrix product for each block of rows with all later rows, by BLAS on all
cores. ``speed`` and ``validity`` end with 1 if the promise is broken, or broken too often.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from benchmarks.claims.recording import Table, add_option
from hashlearn import near_duplicates
from hashlearn.compression import NearDuplicates
from hashlearn.experiments import datasets
from hashlearn.hashers import ITQ, LSH, SignCodes

BLOCK = 512
ROWS = {"speed": 100_000, "hashers": 25_000, "validity": 3_000}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=list(ROWS))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--similarity", type=float, default=0.95)
    parser.add_argument("--missed", type=float, default=0.05)
    parser.add_argument("--confidence", type=float)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 128, 256], help="for hashers")
    add_option(parser)
    given = parser.parse_args()
    rows = planted(given.rows or ROWS[given.mode])
    confidence = given.confidence or (0.9 if given.mode == "validity" else 0.99)
    asked = {"similarity": given.similarity, "missed": given.missed, "confidence": confidence}
    if given.mode == "speed":
        return speed(rows, asked, given.turns)
    if given.mode == "hashers":
        return hashers(rows, asked, given.bits, given.json)
    return validity(rows, asked, given.seeds)


def planted(n: int) -> NDArray[np.float32]:
    """Rows of CLINC150, at most half of all, and copies of them with noise."""
    rng = np.random.default_rng(0)
    X = datasets.load("clinc150_minilm").X.astype(np.float32)
    X = rng.permutation(X / np.linalg.norm(X, axis=1, keepdims=True))[: n // 2]
    copies = X[rng.integers(0, len(X), n - len(X))]
    noise = rng.uniform(0.1, 1.0, (len(copies), 1)) / np.sqrt(X.shape[1]) * rng.standard_normal(copies.shape)
    return np.concatenate([X, (copies + noise).astype(np.float32)])


def speed(rows: NDArray[np.float32], asked: dict[str, Any], turns: int) -> int:
    """Seconds of both in turns."""
    near_duplicates(rows[:5000], **asked, n_checked=1000)  # compiles
    seconds: list[list[float]] = [[], []]
    for _ in range(turns):
        start = perf_counter()
        true = exact(rows, asked["similarity"])
        seconds[1].append(perf_counter() - start)
        start = perf_counter()
        found = near_duplicates(rows, **asked)
        seconds[0].append(perf_counter() - start)
    print(found)
    share = missed_share(found, true)
    print(
        f"\n{len(true):,} pairs by floats; {100 * (1 - len(found.pairs) / len(true)):.2f} % of them are missed, "
        f"{100 * share:.2f} % averaged over rows that have one, promised: {100 * found.promised_missed:g} %"
    )
    print(f"radius {found.radius}, {found.n_candidates:,} candidates")
    for name, times in zip(("near_duplicates", "exact by floats"), seconds, strict=True):
        print(f"{name}: median {np.median(times):.1f} s of {', '.join(f'{time:.1f}' for time in times)}")
    return int(share > found.promised_missed)


def hashers(rows: NDArray[np.float32], asked: dict[str, Any], bits: list[int], path: Path | None) -> int:
    """A line for each kind of code."""
    table = Table("codes", "bits", "radius", "candidates", "pairs", "seconds")
    for n_bits in bits:
        for hasher in (LSH(n_bits, random_state=0), ITQ(n_bits, random_state=0), SignCodes(n_bits, features="pca")):
            start = perf_counter()
            found = near_duplicates(rows, **asked, hasher=hasher)
            counts = f"{found.n_candidates:,}", f"{len(found.pairs):,}", f"{perf_counter() - start:.1f}"
            table.row(f"`{type(hasher).__name__}`", n_bits, found.radius, *counts)
    table.record(path)
    return 0


def validity(rows: NDArray[np.float32], asked: dict[str, Any], n_seeds: int) -> int:
    """How many seeds miss more than promised."""
    true = exact(rows, asked["similarity"])
    shares, radii = [], []
    for seed in range(n_seeds):
        found = near_duplicates(rows, **asked, n_checked=500, n_bits=64, random_state=seed)
        shares.append(missed_share(found, true))
        radii.append(-1 if found.radius is None else found.radius)
    broken = sum(share > asked["missed"] for share in shares)
    allowed = 1.0 - asked["confidence"]
    print(
        f"{len(true):,} pairs of {len(rows):,} rows; {n_seeds} seeds, {radii.count(-1)} of them exact\n"
        f"promised: at most {asked['missed']:g} missed, at {asked['confidence']:g} confidence\n"
        f"missed: mean {np.mean(shares):.4f}, largest {max(shares):.4f}; radius {min(radii)} to {max(radii)}\n"
        f"broken: {broken} of {n_seeds}, {broken / n_seeds:.4f}; allowed: {allowed:.4f}"
    )
    return int(broken > binom.ppf(0.999, n_seeds, allowed))


def exact(rows: NDArray[np.float32], similarity: float) -> NDArray[np.int64]:
    """All pairs by blocks of products in float32."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found = []
    for first in range(0, len(unit), BLOCK):
        near = np.argwhere(unit[first : first + BLOCK] @ unit[first:].T >= similarity)
        found.append(near[near[:, 0] < near[:, 1]] + first)
    return np.concatenate(found)


def missed_share(found: NearDuplicates, true: NDArray[np.int64]) -> float:
    """Mean share of a row's near-duplicates that are missing, over rows that have one."""
    keys, known = (pairs[:, 0] * found.n_rows + pairs[:, 1] for pairs in (true, found.pairs))
    missing = true[~np.isin(keys, known)]
    near, lost = (np.bincount(pairs.ravel(), minlength=found.n_rows) for pairs in (true, missing))
    return float((lost[near > 0] / near[near > 0]).mean())


if __name__ == "__main__":
    raise SystemExit(main())
