"""How much longer does a search by margins take than a search by Hamming distance?

Random codes, random margins. The searches take turns, and medians count: `HammingIndex` by distance and by margins,
the product of margins with unpacked signs (BLAS in float32, with and without picking the k best of it), and FAISS if it
is installed: its binary scan, and its scan of a product quantizer with as many bytes a code. All milliseconds are for
one query. Ends with 1 if a search by margins misses a score of the product.

    python -m benchmarks.asymmetric_scan --codes 1000000 --bits 64 256 --queries 1 100
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn.bits import pack_bits, unpack_signs
from hashlearn.core.threads import n_threads
from hashlearn.search import HammingIndex

COLUMNS = ["hamming", "margins", "product", "product, k best", "faiss binary", "faiss pq"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--queries", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-k", type=int, default=10)
    arguments = parser.parse_args()
    print(f"{arguments.codes:,} codes, k = {arguments.k}, {n_threads()} threads, ms for one query\n")
    print(
        f"| bits | queries | {' | '.join(COLUMNS)} | margins / hamming |", "|---" * (len(COLUMNS) + 3) + "|", sep="\n"
    )
    right = True
    for n_bits in arguments.bits:
        for n_queries in arguments.queries:
            right &= compare(arguments.codes, n_bits, n_queries, arguments.k, arguments.rounds)
    return 0 if right else 1


def compare(n: int, n_bits: int, n_queries: int, k: int, rounds: int) -> bool:
    """Print a line; False if the best scores are not those of the product."""
    rng = np.random.default_rng(0)
    codes = np.concatenate([pack_bits(part < 0.5) for part in random_parts(rng, n, n_bits)])
    margins = rng.standard_normal((n_queries, n_bits))
    searches = ways(codes, margins, k)
    found = searches["margins"]()
    best = np.sort(searches["product, k best"](), axis=1)[:, ::-1]
    times: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(rounds):
        for name, search in searches.items():
            start = time.perf_counter()
            search()
            times[name].append(1000 * (time.perf_counter() - start) / n_queries)
    shown = [f"{np.median(times[name]):.2f}" if name in times else "–" for name in COLUMNS]
    ratio = np.median(np.divide(times["margins"], times["hamming"]))
    print(f"| {n_bits} | {n_queries} | {' | '.join(shown)} | {ratio:.2f} |", flush=True)
    return np.allclose(found.scores, best, rtol=1e-4)


def random_parts(rng: np.random.Generator, n: int, n_bits: int) -> list[np.ndarray]:
    """Uniform numbers (n, n_bits) in parts that fit into memory."""
    return [rng.random((min(100_000, n - at), n_bits), dtype=np.float32) for at in range(0, n, 100_000)]


def ways(codes: np.ndarray, margins: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    n_bits = margins.shape[1]
    queries = pack_bits(margins >= 0)
    index = HammingIndex(n_bits)
    index.add(codes)
    index.search(queries[:1], k)  # builds the engine
    single = margins.astype(np.float32)
    signs = unpack_signs(codes, n_bits).astype(np.float32)

    def k_best() -> np.ndarray:
        """Scores alone, by parts of the queries that fit into memory."""
        return np.concatenate([np.partition(row @ signs.T, -k)[-k:][None] for row in single])

    found: dict[str, Callable[[], Any]] = {
        "hamming": lambda: index.search(queries, k),
        "margins": lambda: index.search(k=k, margins=margins),
        "product": lambda: [single[at : at + 20] @ signs.T for at in range(0, len(single), 20)],
        "product, k best": k_best,
    }
    return found | faiss_ways(codes, queries, single, k)


def faiss_ways(codes: np.ndarray, queries: np.ndarray, single: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    if importlib.util.find_spec("faiss") is None:
        return {}
    import faiss

    n_bits = single.shape[1]
    if n_bits % 8:
        return {}
    binary = faiss.IndexBinaryFlat(n_bits)
    binary.add(codes)
    product = faiss.IndexPQ(n_bits, n_bits // 8, 8)
    product.pq.cp.niter = 1  # its words play no part in the time
    product.pq.train(np.random.default_rng(0).standard_normal((10_000, n_bits)).astype(np.float32))
    product.is_trained = True
    faiss.copy_array_to_vector(codes.ravel(), product.codes)
    product.ntotal = len(codes)
    return {"faiss binary": lambda: binary.search(queries, k), "faiss pq": lambda: product.search(single, k)}


if __name__ == "__main__":
    raise SystemExit(main())
