"""Rows a second that `encode` makes of 784-D float32, against one matrix product of that size and FAISS's ITQ.

``python -m benchmarks.encode_throughput`` times, in turns: `encode` with an RBF function of 5,000 landmarks against the
product rows × landmarks, and `encode` with a linear function against the product rows × bits and against FAISS's
``ITQ32,LSH`` codec on the same rows. Medians of the turns; everything uses all cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from hashlearn import TwoStepHasher
from hashlearn.hash_functions import KernelRidge
from hashlearn.hashers import ITQ

FEATURES, BITS, LANDMARKS = 784, 32, 5_000


def main() -> None:
    options = _options()
    rng = np.random.default_rng(0)
    X = rng.random((max(options.rbf_rows, options.linear_rows), FEATURES), dtype=np.float32)
    learned, labels = X[: 2 * LANDMARKS], rng.integers(0, 10, 2 * LANDMARKS)
    function = KernelRidge(max_gram_rows=LANDMARKS, n_landmarks=LANDMARKS)
    rbf = TwoStepHasher(BITS, hash_function=function, arrange=False, random_state=0)
    rbf.fit(learned, labels)
    points, rows = rbf.hash_functions_.points.astype(np.float32), X[: options.rbf_rows]
    print(f"{len(points)} landmarks, {BITS} bits, {FEATURES} features, float32")
    turns = {"encode, RBF": lambda: rbf.encode(rows), "product": lambda: rows @ points.T}
    _show(_timed(turns, options.turns), "product", len(rows))

    linear, rows = ITQ(BITS, random_state=0).fit(learned), X[: options.linear_rows]
    weights = np.ascontiguousarray(rng.standard_normal((FEATURES, BITS)), dtype=np.float32)
    turns = {"encode, linear": lambda: linear.encode(rows), "product": lambda: rows @ weights}
    codec = _faiss_itq(learned)
    if codec is not None:
        turns["FAISS ITQ"] = lambda: codec.sa_encode(rows)
    _show(_timed(turns, options.turns), "product", len(rows))


def _faiss_itq(learned: Any) -> Any:
    try:
        import faiss
    except ImportError:
        return None
    codec = faiss.index_factory(FEATURES, f"ITQ{BITS},LSH")
    codec.train(learned)
    return codec


def _timed(turns: dict[str, Callable[[], Any]], count: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for turn in range(count + 1):
        for name, work in turns.items():
            began = perf_counter()
            work()
            if turn:  # the first one warms up
                seconds[name].append(perf_counter() - began)
    return {name: median(values) for name, values in seconds.items()}


def _show(seconds: dict[str, float], floor: str, n: int) -> None:
    for name, spent in seconds.items():
        print(f"  {name:16s} {n / spent:12,.0f} rows/s   {100.0 * seconds[floor] / spent:6.1f} % of the product")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rbf-rows", type=int, default=20_000)
    parser.add_argument("--linear-rows", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    main()
