"""``hashlearn search``: the nearest rows of a database, by distance, by margins, or by float rows of the candidates."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.core.progress import ProgressBar

CANDIDATES = 10  # that --rescore ranks for each neighbor, without --depth


@click.command("search", short_help="The nearest rows of a database for each query.")
@options.model_argument
@options.database_option
@options.database_codes_option
@options.queries_option
@click.option("-k", type=int, default=10, help="Neighbors of each query.")
@click.option("--radius", type=int, help="Instead of k: everything at this distance or less.")
@click.option("--asymmetric", is_flag=True, help="Rank by the margins of the query instead of by distance in bits.")
@options.rows_option("--rescore", "Rank candidates again by these float rows of the database")
@click.option("--depth", type=int, help=f"Candidates of each query for --rescore.  [default: {CANDIDATES} times k]")
@click.option("--metric", default="cosine", help="Score of --rescore: cosine, l2 or dot.")
@options.batch_option
@options.answers
def search_command(
    model: Path,
    database: str | None,
    database_codes: str | None,
    queries: str,
    k: int,
    radius: int | None,
    asymmetric: bool,
    rescore: str | None,
    depth: int | None,
    metric: str,
    batch_rows: int | None,
    bar: ProgressBar,
) -> options.Answer:
    """Encode the queries, and the database if it is given as rows, and search it by Hamming distance.

    Each line is a query: its id, then the ids of the nearest rows of the database with their distances in bits, nearest
    first, equal distances by id. Ids are those of the column "id" of a Parquet or CSV file, or those of the codes, and
    else row numbers. With --asymmetric or --rescore, scores take the place of distances, highest first.
    """
    from hashlearn.search import HammingIndex
    from hashlearn.search import rescore as rescored

    _require_fitting(k, radius, asymmetric, rescore, depth)
    hasher = options.loaded(model, bar)
    index = HammingIndex(hasher.n_bits)
    vectors = None if rescore is None else options.rows_for(hasher, rescore, "--rescore")
    asked = options.rows_for(hasher, queries, "--queries", like=vectors)
    named = asked if asked.names is not None else vectors
    names = options.ids_of(asked, "--queries", distinct=False)
    rows = _query_rows(asked) if asymmetric or vectors is not None else None
    if asymmetric:
        wanted = {"margins": _margins(hasher, rows)}
    else:
        wanted = {"codes": options.codes_for(hasher, model, queries, None, "--queries", bar, batch_rows)[0]}
    codes, read_ids = options.codes_for(hasher, model, database, database_codes, "--database", bar, batch_rows, named)
    ids = read_ids()
    if vectors is not None:
        _require_same_rows(vectors, ids)
    began = time.perf_counter()
    bar.begin("searching")
    with refusals("--database-codes"):
        index.add(codes, ids)
    if depth is None:
        depth = k if vectors is None else min(CANDIDATES * k, len(index))
    with refusals():
        found: Any = index.search(k=depth, **wanted) if radius is None else index.search_radius(wanted["codes"], radius)
        if vectors is not None:
            found = rescored(found, rows, vectors, k, metric=metric, ids=ids)
    spent = time.perf_counter() - began
    neighbors = _listed(found, names)
    report = {
        "model": str(model),
        "n_bits": hasher.n_bits,
        "asymmetric": asymmetric,
        "n_database": len(index),
        "n_queries": len(neighbors),
        **({"k": k} if radius is None else {"radius": radius}),
        **({} if vectors is None else {"depth": depth, "metric": metric}),
        "seconds": spent,
        "neighbors": neighbors,
    }
    return report, "\n".join(_line(*row.values()) for row in neighbors)


def _require_fitting(k: int, radius: int | None, asymmetric: bool, rescore: str | None, depth: int | None) -> None:
    """Refuse options that exclude each other, before any file is read."""
    if radius is not None and (asymmetric or rescore is not None):
        raise InputError("--radius: is a distance in bits; leave it out with --asymmetric and --rescore")
    if depth is not None and rescore is None:
        raise InputError("--depth: is how many candidates --rescore ranks; give --rescore too")
    if depth is not None and depth < k:
        raise InputError(f"--depth: must be at least k = {k}, got {depth}")


def _query_rows(source: Any) -> Any:
    """The features of all queries, in memory."""
    with refusals("--queries"):
        rows = source.read()
    return rows.toarray() if hasattr(rows, "toarray") else rows


def _require_same_rows(vectors: Any, ids: Any) -> None:
    """Refuse float rows that are not those of the database, in its order."""
    if vectors.n_rows != len(ids):
        raise InputError(f"--rescore: {vectors.name} has {vectors.n_rows} row(s), and the database has {len(ids)}")
    if vectors.columns.id is not None:
        differing = (options.ids_of(vectors, "--rescore") != ids).nonzero()[0]
        if len(differing):
            raise InputError(
                f"--rescore: {vectors.name} has another id than the database at row {differing[0]}; its rows must be "
                "those of the database, in the same order"
            )


def _margins(hasher: Any, rows: Any) -> Any:
    with refusals("--queries"):
        return hasher.decision_function(rows)


def _listed(found: Any, names: Any) -> list[dict[str, Any]]:
    """The neighbors of each query."""
    from hashlearn.search import RadiusResult, ScoredResult

    name = "scores" if isinstance(found, ScoredResult) else "distances"
    if isinstance(found, RadiusResult):
        each = [(item.indices, item.distances) for item in found]
    else:
        each = list(zip(found.indices, getattr(found, name), strict=True))
    return [
        {"query": query, "ids": ids.tolist(), name: values.tolist()}
        for query, (ids, values) in zip(names.tolist(), each, strict=True)
    ]


def _line(query: Any, ids: list[Any], values: list[float]) -> str:
    shown = (f"{value:.4g}" if isinstance(value, float) else value for value in values)
    return f"{_word(query)}\t" + "  ".join(f"{_word(i)} ({value})" for i, value in zip(ids, shown, strict=True))


def _word(item: Any) -> str:
    """An id in a line of text: quoted if it would break the line, or look like another column.

    >>> _word("a b"), _word("two\\tcolumns"), _word(7)
    ('a b', '"two\\\\tcolumns"', '7')
    """
    text = str(item)
    return text if text.isprintable() and not text.startswith('"') else json.dumps(text)
