"""``hashlearn compress`` and ``verify``: the smallest code that keeps a promise about recall, and the promise again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import at_least, percent, seconds, text_table

HEADER = ("bytes", "family", "search", "depth", "codes", "at least", "rescored", "at least", "ms a query", "fit, s", "")
HOW_TO_READ = """\
How to read it: "codes" is recall@{k} by code alone, "rescored" after the first {depth:,} are ranked again by the
original vectors, which must be kept. "depth" says how many candidates are enough for {recall}. All "at least",
depths and the promise hold together."""


@click.command("compress", short_help="The smallest code that keeps a tested promise about recall.")
@options.features_argument
@options.output_option("Where the model goes, with the promise inside.")
@options.file_option("--page", "An HTML page with the verdict, to look at.")
@click.option("--recall", type=float, default=0.95, help="Share of true neighbors that must be found.")
@click.option("-k", type=int, default=10, help="Neighbors of each query.")
@click.option("--confidence", type=float, default=0.99, help="At 0.99 at most 1 in 100 promises fails.")
@options.rows_option("--queries", "Rows like those that will be searched for, if they differ from FEATURES")
@options.rows_option("--labels", "Classes (n,) or 0/1 indicators (n, n_labels); two-step codes are then tried too")
@click.option("--max-bytes", type=int, help="Largest code that is tried.  [default: 128]")
@click.option("--max-depth", type=int, help="Candidates that may be rescored.  [default: 20 times k]")
@click.option("--codes-only", is_flag=True, help="Promise a recall for codes alone: vectors are not kept.")
@click.option("--metric", default="cosine", help="Nearness of vectors: cosine or euclidean.")
@click.option("--mode", default="auto", help="Kind of search: hamming (other engines), asymmetric (hashlearn) or auto.")
@click.option("--family", "families", multiple=True, help="Codes to try; an unknown name lists them. May be repeated.")
@click.option("--thorough", is_flag=True, help="Try neural codes too, and FAISS at all sizes: several minutes.")
@click.option("--max-rows", type=int, default=100_000, help="A larger file is tested by a random sample of this many.")
@click.option("--texts", metavar="FILE", help="Text of each row for the page, such as rows.parquet::title.")
@click.option("--query-texts", metavar="FILE", help="Text of each query for the page.")
@click.option("--plan-for", type=click.IntRange(min=1), metavar="N", help="Rows to plan memory for.  [default: all]")
@options.seed_option
@options.answers
def compress_command(
    features: str,
    output: Path,
    page: Path | None,
    queries: str | None,
    labels: str | None,
    codes_only: bool,
    families: tuple[str, ...],
    texts: str | None,
    query_texts: str | None,
    plan_for: int | None,
    seed: int,
    bar: ProgressBar,
    **settings: Any,
) -> options.Answer:
    """Find the smallest binary code of FEATURES, a file of rows, whose search keeps a promised recall.

    The original vectors must be kept: a search rescores its best candidates with them, unless --codes-only is given.
    Codes of several kinds and sizes are tried on queries that are kept out. A fifth of the queries choose, the others
    test the choice, so the promise is valid after all the choosing. If the recall asked for cannot be promised, the
    best promise of the codes that were tried is written and said.
    """
    from hashlearn import compress
    from hashlearn.files import open_rows, read_labels

    inputs = (features, queries, labels, texts, query_texts)
    options.require_place(output, *inputs)
    if page is not None:
        options.require_place(page, *inputs, option="--page")
        if page.resolve() == output.resolve():
            raise InputError("--page: is the same file as --output; name another one")
    elif texts or query_texts or plan_for:
        raise InputError("--page: is missing; --texts, --query-texts and --plan-for are for the page")
    bar.begin("reading")
    with refusals():
        source = open_rows(features)
    own = None if queries is None else options.rows_like(queries, source)
    with refusals("--labels"):
        y = None if labels is None else read_labels(labels)
    on_page = {
        "texts": options.texts_for(texts, source.n_rows, "--texts"),
        "query_texts": options.texts_for(query_texts, None if own is None else len(own), "--query-texts"),
    }
    with refusals(source.name):
        plan = compress(
            source,
            y,
            queries=own,
            keep_floats=not codes_only,
            families=families or None,
            random_state=seed,
            progress=bar,
            **settings,
        )
    bar.begin("writing")
    with refusals(f"--output {output}"):
        plan.save(output)
    if page is not None:
        with refusals(f"--page {page}"):
            plan.page(page, n_rows=plan_for, **on_page)
    certificate = plan.certificate
    report = {
        "model": str(output),
        "page": None if page is None else str(page),
        "kept": certificate.kept,
        "bytes_per_row": plan.bytes_per_row,
        "certificate": asdict(certificate),
        "frontier": [asdict(row) for row in plan.frontier],
    }
    how = HOW_TO_READ.format(k=certificate.k, depth=certificate.max_depth, recall=percent(certificate.recall))
    files = [("model", str(output)), *([] if page is None else [("page", str(page))])]
    return report, str(plan), text_table(HEADER, [_row(row) for row in plan.frontier]), how, files


def _row(row: Any) -> tuple[str, ...]:
    return (
        str(row.bytes_per_row),
        row.family,
        row.mode,
        "–" if row.depth is None else f"{row.depth:,}",
        percent(row.codes_recall, 3),
        at_least(row.codes_bound),
        percent(row.recall, 3),
        at_least(row.bound),
        f"{row.ms_per_query:.2f}",
        seconds(row.fit_seconds),
        "chosen" if row.chosen else "",
    )


@click.command("verify", short_help="Test the promise of a model again; exit code 1 if it is broken.")
@options.model_argument
@options.rows_option("--database", "Rows to search", required=True)
@options.queries_option
@options.answers
def verify_command(model: Path, database: str, queries: str, bar: ProgressBar) -> options.Answer:
    """Test the promise that hashlearn compress wrote into MODEL on new queries, and on the database as it is now.

    Exit code 1 if it is broken, and 0 if it is kept, or if these queries are too few to decide.
    """
    from hashlearn.compression import Compression, verify

    plan = options.loaded(model, bar, Compression.load)
    source = options.rows_for(plan.hasher, database, "--database")
    query_source = options.rows_for(plan.hasher, queries, "--queries", like=source)
    rows, query_rows = options.read(source, "--database"), options.read(query_source, "--queries")
    bar.begin("searching")
    with refusals():
        verification = verify(plan, rows, query_rows)
    return {"model": str(model), **asdict(verification), "ok": verification.kept is not False}, str(verification)
