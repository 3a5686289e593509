"""``hashlearn search MODEL --database FILE --queries FILE``: the nearest rows by Hamming distance of their codes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import refusals
from hashlearn.cli.progress import ProgressBar


@click.command("search", short_help="The nearest rows of a database for each query.")
@options.model_argument
@options.database_option
@options.database_codes_option
@options.queries_option
@click.option("-k", type=int, default=10, help="Neighbours of each query.")
@click.option("--radius", type=int, help="Instead of k: everything at this distance or less.")
@click.option("--backend", default="auto", help="Engine; an unknown name lists them all.")
@options.batch_option
@options.answers
def search_command(
    model: Path,
    database: str | None,
    database_codes: str | None,
    queries: str,
    k: int,
    radius: int | None,
    backend: str,
    batch_rows: int | None,
    bar: ProgressBar,
) -> tuple[dict[str, Any], str]:
    """Encode the queries, and the database if it is given as rows, and search it by Hamming distance.

    Each line is a query: its row, then the nearest rows of the database with their distances in bits, nearest first,
    equal distances by row. Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.search import HammingIndex

    hasher = options.loaded(model, bar)
    with refusals("--backend"):
        index = HammingIndex(hasher.n_bits, backend)
    wanted, _ = options.codes_for(hasher, queries, None, "--queries", bar, batch_rows)
    codes, ids = options.codes_for(hasher, database, database_codes, "--database", bar, batch_rows)
    began = time.perf_counter()
    bar.begin("searching")
    with refusals("--database-codes"):
        index.add(codes, ids)
    with refusals():
        found: Any = index.search(wanted, k) if radius is None else index.search_radius(wanted, radius)
    spent = time.perf_counter() - began
    if radius is None:
        each = list(zip(found.indices, found.distances, strict=True))
    else:
        each = [(item.indices, item.distances) for item in found]
    neighbours = []
    for query, (rows, distances) in enumerate(each):
        there = rows >= 0  # an approximate engine marks missing neighbours with -1
        neighbours.append({"query": query, "ids": rows[there].tolist(), "distances": distances[there].tolist()})
    report = {
        "model": str(model),
        "n_bits": hasher.n_bits,
        "backend": index.backend.name,
        "exact": index.backend.exact,
        "n_database": len(index),
        "n_queries": len(wanted),
        **({"k": k} if radius is None else {"radius": radius}),
        "seconds": spent,
        "neighbours": neighbours,
    }
    return report, "\n".join(_line(**row) for row in neighbours)


def _line(query: int, ids: list[int], distances: list[int]) -> str:
    return f"{query}\t" + "  ".join(f"{i} ({d})" for i, d in zip(ids, distances, strict=True))
