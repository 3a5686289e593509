"""``hashlearn search MODEL --database FILE --queries FILE``: the nearest rows by Hamming distance of their codes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from hashlearn.cli.exits import refusals
from hashlearn.cli.inputs import (
    batch_option,
    codes_for,
    json_option,
    loaded,
    model_argument,
    quiet_option,
    rows_option,
    show,
)
from hashlearn.cli.steps import Steps


@click.command("search", short_help="The nearest rows of a database for each query.")
@model_argument
@rows_option("--database", "Rows to search")
@rows_option("--database-codes", "Instead: their codes, as encode wrote them", formats="npy or Parquet")
@rows_option("--queries", "Rows to search for", required=True)
@click.option("-k", type=int, default=10, show_default=True, help="Neighbours of each query.")
@click.option("--radius", type=int, help="Instead of k: everything at this distance or less.")
@click.option("--backend", default="auto", show_default=True, help="Engine; an unknown name lists them all.")
@batch_option
@json_option
@quiet_option
def search_command(
    model: Path,
    database: str | None,
    database_codes: str | None,
    queries: str,
    k: int,
    radius: int | None,
    backend: str,
    batch_rows: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Encode the queries, and the database if it is given as rows, and search it by Hamming distance.

    Each line is a query: its row, then the nearest rows of the database with their distances in bits, nearest first,
    equal distances by row. Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.search import HammingIndex

    with Steps(quiet) as steps:
        steps.begin("loading the model")
        hasher = loaded(model)
        with refusals("--backend"):
            index = HammingIndex(hasher.n_bits, backend)
        wanted, _ = codes_for(hasher, queries, None, "--queries", steps, batch_rows)
        codes, ids = codes_for(hasher, database, database_codes, "--database", steps, batch_rows)
        began = time.perf_counter()
        steps.begin("searching")
        with refusals("--database-codes"):
            index.add(codes, ids)
        with refusals():
            found: Any = index.search(wanted, k) if radius is None else index.search_radius(wanted, radius)
        spent = time.perf_counter() - began
    report = {
        "model": str(model),
        "n_bits": hasher.n_bits,
        "backend": index.backend.name,
        "exact": index.backend.exact,
        "n_database": len(index),
        "n_queries": len(wanted),
        **({"k": k} if radius is None else {"radius": radius}),
        "seconds": spent,
        "neighbours": [{"query": i, "ids": a, "distances": b} for i, (a, b) in enumerate(_each(found))],
    }
    show(as_json, report, "\n".join(_line(i, *pair) for i, pair in enumerate(_each(found))))


def _each(found: Any) -> Iterator[tuple[list[int], list[int]]]:
    """Ids and distances of every query; places that an approximate engine left empty are left out."""
    if hasattr(found, "limits"):
        for item in found:
            yield item.indices.tolist(), item.distances.tolist()
        return
    for ids, distances in zip(found.indices, found.distances, strict=True):
        there = ids >= 0
        yield ids[there].tolist(), distances[there].tolist()


def _line(query: int, ids: list[int], distances: list[int]) -> str:
    return f"{query}\t" + "  ".join(f"{i} ({d})" for i, d in zip(ids, distances, strict=True))
