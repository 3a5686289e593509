"""``hashlearn search``: the nearest rows of a database, by distance, by margins, or by float rows of the candidates."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals, refuse
from hashlearn.cli.places import store_at, store_opened
from hashlearn.core.progress import ProgressBar

IN_BITS = "is a distance in bits; leave it out with --asymmetric and --rescore"
IS_FOR_STORES = "is for stores; hashlearn export makes one from a file of codes"
NEEDS_CODES = "needs the codes in memory, and those of a store are not; give a file of codes"
CANDIDATES = 10  # that --rescore ranks for each neighbor, without --depth
COMPARISONS = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}  # names in module operator


@click.command("search", short_help="The nearest rows of a database for each query.")
@options.model_argument
@options.database_option
@options.rows_option("--database-codes", "Instead: their codes, npy or Parquet, or a store (file, folder or URL)")
@options.queries_option
@click.option("-k", type=int, default=10, help="Neighbors of each query.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Of a store: such as lang=en or 'year>=2020'.")
@options.table_option
@options.columns_option
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
    where: tuple[str, ...],
    table: str | None,
    columns: str | None,
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
    else row numbers. With --asymmetric or --rescore, scores take the place of distances, highest first. Rows for
    --rescore that have ids are found by them; rows without must be in the order of the database.
    """
    from hashlearn.persistence import fingerprint
    from hashlearn.search import HammingIndex
    from hashlearn.search import rescore as rescored
    from hashlearn.search.about import About

    hasher = options.loaded(model, bar)
    with refusals("--database-codes"):
        store = None if database_codes is None else store_at(database_codes)
    refuse(
        (radius is not None and (asymmetric or rescore), f"--radius: {IN_BITS}"),
        (depth is not None and rescore is None, "--depth: is how many candidates --rescore ranks; give --rescore too"),
        (depth is not None and depth < k, f"--depth: must be at least k = {k}, got {depth}"),
        (store is None and where, f"--where: {IS_FOR_STORES}"),
        (store is None and table is not None, f"--table: {IS_FOR_STORES}"),
        (store is None and columns is not None, f"--columns: {IS_FOR_STORES}"),
        (store is not None and database is not None, "--database: give either --database or --database-codes"),
        (store is not None and radius is not None, f"--radius: {NEEDS_CODES}"),
        (store is not None and asymmetric, f"--asymmetric: {NEEDS_CODES}"),
    )
    vectors = None if rescore is None else options.rows_for(hasher, rescore, "--rescore")
    query_source = options.rows_for(hasher, queries, "--queries", like=vectors)
    names = options.ids_of(query_source, "--queries", distinct=False)
    rows: Any = options.read(query_source, "--queries") if asymmetric or vectors is not None else None
    if asymmetric:
        with refusals("--queries"):
            query = {"margins": hasher.decision_function(rows)}
    else:
        query = {"codes": options.encoded(hasher, query_source, "--queries", bar, batch_rows)}
    with ExitStack() as stack:
        index: Any = HammingIndex(hasher.n_bits)
        ids = None
        if store is None:
            like = query_source if query_source.names is not None else vectors
            files = database, database_codes
            codes, read_ids = options.database_for(hasher, model, files, like, bar, batch_rows)
            ids = read_ids()
            with refusals("--database-codes"):
                index.add(codes, ids)
        else:
            index = stack.enter_context(store_opened(store, str(database_codes), table, columns))
            with refusals("--database-codes"):
                index.about.require(About(hasher.n_bits, model=fingerprint(hasher)), index._described)
            query["where"] = _condition(where, index.fields)
        n_database = len(index)
        if depth is None:
            depth = k if vectors is None else min(CANDIDATES * k, n_database)
        if vectors is not None:
            ids = _vector_ids(vectors, ids)
        bar.begin("searching")
        with refusals():
            result = index.search(k=depth, **query) if radius is None else index.search_radius(query["codes"], radius)
            if vectors is not None:
                rows = rows.toarray() if hasattr(rows, "toarray") else rows
                result = rescored(result, rows, vectors, k, metric=metric, ids=ids)
    neighbors = _listed(result, names)
    report = {
        "model": str(model),
        "n_bits": hasher.n_bits,
        "asymmetric": asymmetric,
        "n_database": n_database,
        "n_queries": len(neighbors),
        **({"k": k} if radius is None else {"radius": radius}),
        **({} if vectors is None else {"depth": depth, "metric": metric}),
        "neighbors": neighbors,
    }
    return report, "\n".join(_line(*row.values()) for row in neighbors)


def _condition(texts: Iterable[str], fields: Mapping[str, str]) -> Any:
    """The conditions of --where together, with values of the types of the stored columns; None if there are none."""
    from hashlearn.search.fields import FIELD_TYPES
    from hashlearn.search.stores import column

    conditions = []
    for text in texts:
        parts = re.fullmatch(r"(.+?)(<=|>=|!=|=|<|>)(.*)", text, re.DOTALL)
        if parts is None:
            raise InputError(f"--where: must be NAME=VALUE, or have !=, <, <=, > or >= between them; got {text!r}")
        name, sign, word = parts.groups()
        kind = fields.get(name, "text")
        try:
            value = {"true": True, "false": False}[word] if kind == "boolean" else FIELD_TYPES[kind](word)
        except (KeyError, ValueError):
            raise InputError(f"--where: column {name!r} holds {kind}, got {word!r}") from None
        conditions.append(getattr(operator, COMPARISONS[sign])(column(name), value))
    return reduce(operator.and_, conditions) if conditions else None


def _vector_ids(vectors: Any, ids: Any) -> Any:
    """The id of each float row: its own, or else that of the database's row at its place; None: its number."""
    if vectors.columns.id is not None:
        return options.ids_of(vectors, "--rescore")
    if ids is not None and vectors.n_rows != len(ids):
        raise InputError(f"--rescore: {vectors.name} has {vectors.n_rows} row(s), and the database has {len(ids)}")
    return ids


def _listed(result: Any, names: Any) -> list[dict[str, Any]]:
    """The neighbors of each query, fewer than k where a filter leaves fewer."""
    from hashlearn.search import RadiusResult, ScoredResult
    from hashlearn.search.ids import are_found

    name = "scores" if isinstance(result, ScoredResult) else "distances"
    if isinstance(result, RadiusResult):
        each = [(item.indices, item.distances) for item in result]
    else:
        each = list(zip(result.indices, getattr(result, name), strict=True))
    return [
        {"query": query, "ids": ids[there].tolist(), name: values[there].tolist()}
        for query, (ids, values) in zip(names.tolist(), each, strict=True)
        for there in [are_found(ids)]
    ]


def _line(query: Any, ids: list[Any], values: list[float]) -> str:
    texts = (f"{value:.4g}" if isinstance(value, float) else value for value in values)
    return f"{_word(query)}\t" + "  ".join(f"{_word(i)} ({value})" for i, value in zip(ids, texts, strict=True))


def _word(item: Any) -> str:
    """An id in a line of text: quoted if it would break the line, or look like another column.

    >>> _word("a b"), _word("two\\tcolumns"), _word(7)
    ('a b', '"two\\\\tcolumns"', '7')
    """
    text = str(item)
    return text if text.isprintable() and not text.startswith('"') else json.dumps(text)
