"""``hashlearn search``: the nearest rows of a database, by distance, by margins, or by float rows of the candidates."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.cli.places import store_at, store_opened
from hashlearn.core.progress import ProgressBar

CANDIDATES = 10  # that --rescore ranks for each neighbor, without --depth
COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@click.command("search", short_help="The nearest rows of a database for each query.")
@options.model_argument
@options.database_option
@options.rows_option("--database-codes", "Instead: their codes, npy or Parquet, or a store (file, folder or URL)")
@options.queries_option
@click.option("-k", type=int, default=10, help="Neighbors of each query.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Of a store: such as lang=en or 'year>=2020'.")
@options.table_option
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
    from hashlearn.search import HammingIndex
    from hashlearn.search import rescore as rescored

    _require_fitting(k, radius, asymmetric, rescore, depth)
    hasher = options.loaded(model, bar)
    with refusals("--database-codes"):
        store = None if database_codes is None else store_at(database_codes)
    _require_fitting_place(store, database, bool(where), table, radius, asymmetric)
    vectors = None if rescore is None else options.rows_for(hasher, rescore, "--rescore")
    asked = options.rows_for(hasher, queries, "--queries", like=vectors)
    names = options.ids_of(asked, "--queries", distinct=False)
    rows: Any = options.read(asked, "--queries") if asymmetric or vectors is not None else None
    if asymmetric:
        query = {"margins": _margins(hasher, rows)}
    else:
        query = {"codes": options.codes_for(hasher, model, queries, None, "--queries", bar, batch_rows)[0]}
    if store is None:
        like = asked if asked.names is not None else vectors
        codes, read_ids = options.codes_for(
            hasher, model, database, database_codes, "--database", bar, batch_rows, like
        )
        index, ids = HammingIndex(hasher.n_bits), read_ids()
        with refusals("--database-codes"):
            index.add(codes, ids)
        found, n_database, depth = _searched(index, query, k, depth, radius, vectors, bar)
    else:
        with store_opened(store, str(database_codes), table) as opened:
            _require_codes_of(hasher, opened)
            query["where"] = _condition(where, opened.fields)
            found, n_database, depth = _searched(opened, query, k, depth, None, vectors, bar)
        ids = None
    if vectors is not None:
        with refusals():
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            found = rescored(found, rows, vectors, k, metric=metric, ids=_vector_ids(vectors, ids))
    neighbors = _listed(found, names)
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


def _searched(
    index: Any, query: Mapping[str, Any], k: int, depth: int | None, radius: int | None, vectors: Any, bar: ProgressBar
) -> tuple[Any, int, int]:
    """What an index or a store answers, how many codes it has, and the depth."""
    bar.begin("searching")
    n_database = len(index)
    if depth is None:
        depth = k if vectors is None else min(CANDIDATES * k, n_database)
    with refusals():
        if radius is not None:
            return index.search_radius(query["codes"], radius), n_database, depth
        return index.search(k=depth, **query), n_database, depth


def _require_fitting(k: int, radius: int | None, asymmetric: bool, rescore: str | None, depth: int | None) -> None:
    """Refuse options that exclude each other, before any file is read."""
    if radius is not None and (asymmetric or rescore is not None):
        raise InputError("--radius: is a distance in bits; leave it out with --asymmetric and --rescore")
    if depth is not None and rescore is None:
        raise InputError("--depth: is how many candidates --rescore ranks; give --rescore too")
    if depth is not None and depth < k:
        raise InputError(f"--depth: must be at least k = {k}, got {depth}")


def _require_fitting_place(
    store: str | None, database: str | None, has_where: bool, table: str | None, radius: int | None, asymmetric: bool
) -> None:
    """Refuse what only a store has where there is none, and what no store has."""
    if store is None:
        for option, is_there in (("--where", has_where), ("--table", table is not None)):
            if is_there:
                raise InputError(f"{option}: is for stores; hashlearn export makes one from a file of codes")
    elif database is not None:
        raise InputError("--database: give either --database or --database-codes")
    for option, is_there in (("--radius", radius is not None), ("--asymmetric", asymmetric)):
        if store is not None and is_there:
            raise InputError(f"{option}: needs the codes in memory, and a store has none of it; give a file of codes")


def _require_codes_of(hasher: Any, store: Any) -> None:
    """Refuse a store with codes of another width or model."""
    from hashlearn.persistence import fingerprint
    from hashlearn.search.about import About

    with refusals("--database-codes"):
        store.about.require(About(hasher.n_bits, model=fingerprint(hasher)), store._described)


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
        conditions.append(COMPARISONS[sign](column(name), value))
    return reduce(operator.and_, conditions) if conditions else None


def _vector_ids(vectors: Any, ids: Any) -> Any:
    """The id of each float row: its own, or else that of the database's row at its place; None: its number."""
    if vectors.columns.id is not None:
        return options.ids_of(vectors, "--rescore")
    if ids is not None and vectors.n_rows != len(ids):
        raise InputError(f"--rescore: {vectors.name} has {vectors.n_rows} row(s), and the database has {len(ids)}")
    return ids


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
