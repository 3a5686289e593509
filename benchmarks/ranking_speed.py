"""Seconds of `RankingHasher`: fits beside those of FAISS in turns, a million rows, and encoding.

``python -m benchmarks.ranking_speed fit``      8 bytes, CLINC150: both encoders, FAISS's ITQ, OPQ and LSQ, in turns
``python -m benchmarks.ranking_speed million``  1,000,000 × 384: seconds, and peak memory as a multiple of the data
``python -m benchmarks.ranking_speed encode``   100,000 × 384: rows a second of both encoders and of ITQ, in turns

A million rows are rows of CLINC150, drawn with replacement, with noise. Peak memory is that of the process.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.claims.recording import add_option, record
from benchmarks.frontier import QUANTIZERS, FaissITQ
from hashlearn import RankingHasher
from hashlearn.core.packages import require
from hashlearn.experiments import datasets
from hashlearn.hashers import ITQ

BITS, NOISE = 64, 0.03
MILLION, ENCODED = 1_000_000, 100_000


def fit(X: NDArray[Any], turns: int) -> dict[str, float]:
    """Medians over turns."""

    def ranking(encoder: str) -> Callable[[], Any]:
        return lambda: RankingHasher(BITS, encoder=encoder, random_state=0).fit(X)

    def quantizer(name: str) -> Callable[[], Any]:
        return lambda: (
            require("faiss", "faiss", "this comparison")
            .index_factory(X.shape[1], QUANTIZERS[name].format(n=BITS // 8))
            .train(X)
        )

    RankingHasher(8, n_steps=2, hidden=16, random_state=0).fit(X[:1000])  # compiles
    tasks = {f"RankingHasher, {encoder}": ranking(encoder) for encoder in ("mlp", "linear")}
    tasks |= {"FAISS ITQ": lambda: FaissITQ(BITS).fit(X), **{name: quantizer(name) for name in ("OPQ", "LSQ")}}
    seconds = show(in_turns(tasks, turns))
    return dict(zip(("mlp", "linear", "faiss_itq", "opq", "lsq"), seconds, strict=True))


def million(X: NDArray[Any], turns: int) -> dict[str, float]:
    """One fit."""
    many = drawn(X, MILLION)
    RankingHasher(8, n_steps=2, hidden=16, random_state=0).fit(X[:1000])
    before = peak_bytes()
    seconds = show(in_turns({"RankingHasher, mlp": lambda: RankingHasher(BITS, random_state=0).fit(many)}, 1))
    before, peak = (number / many.nbytes for number in (before, peak_bytes()))
    print(f"{many.shape}: {seconds[0]:.1f} s, peak memory {peak:.2f} × the data, {before:.2f} × before the fit")
    return {"seconds": seconds[0], "peak": peak}


def encode(X: NDArray[Any], turns: int) -> dict[str, float]:
    """Medians over turns, as rows a second."""
    rows = drawn(X, ENCODED)
    hashers = {"RankingHasher, " + name: RankingHasher(BITS, encoder=name, n_steps=20, random_state=0) for name in
               ("mlp", "linear")} | {"ITQ, a linear function": ITQ(BITS, random_state=0)}  # fmt: skip
    for hasher in hashers.values():
        hasher.fit(X[:5000]).encode(rows[:1000])
    tasks = {name: lambda hasher=hasher: hasher.encode(rows) for name, hasher in hashers.items()}
    rates = [len(rows) / seconds for seconds in show(in_turns(tasks, turns))]
    for name, rate in zip(tasks, rates, strict=True):
        print(f"{name}: {rate:,.0f} rows a second")
    return dict(zip(("mlp", "linear", "itq"), rates, strict=True))


def drawn(X: NDArray[Any], n: int) -> NDArray[np.float32]:
    """Rows with noise, block by block."""
    rng = np.random.default_rng(0)
    rows = np.empty((n, X.shape[1]), np.float32)
    for first in range(0, n, 50_000):
        block = rows[first : first + 50_000]
        block[:] = X[rng.integers(len(X), size=len(block))]
        block += NOISE * rng.standard_normal(block.shape, dtype=np.float32)
    return rows


def in_turns(tasks: dict[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    """Seconds of every task, one after the other in each turn."""
    spent: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(turns):
        for name, task in tasks.items():
            began = perf_counter()
            task()
            spent[name].append(perf_counter() - began)
    return spent


def show(spent: dict[str, list[float]]) -> list[float]:
    """Print and return the medians."""
    for name, seconds in spent.items():
        print(f"{name}: {median(seconds):.2f} s ({', '.join(f'{s:.2f}' for s in seconds)})", flush=True)
    return [median(seconds) for seconds in spent.values()]


def peak_bytes() -> int:
    """Of this process, so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"fit": fit, "million": million, "encode": encode}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--turns", type=int, default=2)
    add_option(parser)
    options = parser.parse_args()
    data = datasets.load("clinc150_minilm")
    assert data.is_query is not None
    values = parts[options.part](np.ascontiguousarray(data.X[~data.is_query], np.float32), options.turns)
    record(options.json, values=values)


if __name__ == "__main__":
    main()
