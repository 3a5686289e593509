"""mAP and precision within radius 2: hashlearn against a NumPy argsort for each query.

Both are timed in turns on the same random codes, the smallest of all rounds counts. NumPy is timed on a part of the
queries and scaled to all of them, as its time is one loop over queries; ``--full`` times all. It is shown twice: with
distances as NumPy's sum returns them (64-bit), and as 8-bit numbers, for which its stable argsort is a radix sort, the
fastest that it has. NumPy sorts on one thread.

    python -m benchmarks.metrics_speed --queries 10000 --database 60000 --bits 32
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from hashlearn import metrics
from hashlearn.bits import as_words, pack_bits
from hashlearn.core.threads import n_threads

RADIUS = 2
AGREEMENT = 1e-12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--database", type=int, default=60_000)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--noise", type=float, default=0.15, help="chance of a bit to differ from its class's codeword")
    parser.add_argument("--subset", type=int, default=200, help="queries that NumPy is timed on")
    parser.add_argument("--full", action="store_true", help="time NumPy on all queries")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.bits > 255:
        parser.error("--bits must be at most 255: the NumPy side keeps distances in 8 bits")
    data = class_codes(arguments)
    queries, database, query_labels, database_labels = data
    m = len(queries) if arguments.full else min(arguments.subset, len(queries))
    part = (queries[:m], database, query_labels[:m], database_labels)

    contenders: dict[str, Callable[[], tuple[float, float]]] = {
        "hashlearn, ties expected": lambda: ours(*data, ties="expected"),
        "hashlearn, ties stable": lambda: ours(*data, ties="stable"),
        "NumPy argsort": lambda: numpy_argsort(*part, kind=np.uint64),
        "NumPy argsort, 8-bit": lambda: numpy_argsort(*part, kind=np.uint8),
    }
    ours(*part, ties="expected"), ours(*part, ties="stable")  # compile
    best = dict.fromkeys(contenders, np.inf)
    for _ in range(arguments.rounds):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            best[name] = min(best[name], time.perf_counter() - start)
    plain, radix = best["NumPy argsort"] * len(queries) / m, best["NumPy argsort, 8-bit"] * len(queries) / m

    print(f"{len(queries)} queries x {len(database)} items, {arguments.bits} bits, {n_threads()} threads")
    print(f"best of {arguments.rounds} rounds in turns; NumPy timed on {m} queries and scaled to {len(queries)}")
    for name, seconds in (*best.items(),)[:2]:
        print(
            f"{name:26s} {seconds:8.3f} s   {plain / seconds:6.1f} x argsort   {radix / seconds:6.1f} x 8-bit argsort"
        )
    for name, seconds in (("NumPy argsort", plain), ("NumPy argsort, 8-bit", radix)):
        print(f"{name:26s} {seconds:8.3f} s")
    difference = np.abs(np.subtract(ours(*part, ties="stable"), numpy_argsort(*part, kind=np.uint64))).max()
    agree = bool(difference <= AGREEMENT)
    print(f"largest difference on {m} queries (ties stable): {difference:.1e}, at most {AGREEMENT:.0e}: {agree}")
    return 0 if agree else 1


def class_codes(arguments: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Noisy copies of one random codeword for each class."""
    rng = np.random.default_rng(0)
    codewords = rng.random((arguments.classes, arguments.bits)) < 0.5

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, arguments.classes, n)
        return pack_bits(codewords[labels] ^ (rng.random((n, arguments.bits)) < arguments.noise)), labels

    (queries, query_labels), (database, database_labels) = draw(arguments.queries), draw(arguments.database)
    return queries, database, query_labels, database_labels


def ours(*data: np.ndarray, ties: str) -> tuple[float, float]:
    found = metrics.evaluate(*data, ties=ties, radius=RADIUS)
    return found.mean_average_precision, found.precision_within_radius


def numpy_argsort(
    queries: np.ndarray, database: np.ndarray, query_labels: np.ndarray, database_labels: np.ndarray, *, kind: type
) -> tuple[float, float]:
    """What one would write: one stable argsort of distances of dtype ``kind`` for each query."""
    query_words, database_words = as_words(queries), as_words(database)
    average_precisions, precisions = [], []
    for code, label in zip(query_words, query_labels, strict=True):
        distances = np.bitwise_count(database_words ^ code).sum(axis=1, dtype=kind)
        relevant = database_labels == label
        ranks = np.flatnonzero(relevant[np.argsort(distances, kind="stable")]) + 1
        average_precisions.append(np.mean(np.arange(1, len(ranks) + 1) / ranks) if len(ranks) else 0.0)
        found = relevant[distances <= RADIUS]
        precisions.append(found.mean() if len(found) else 0.0)
    return float(np.mean(average_precisions)), float(np.mean(precisions))


if __name__ == "__main__":
    raise SystemExit(main())
