"""Commands that use a model file: ``hashlearn encode`` and ``evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import Interrupted, refusals, refuse
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import percent


@click.command("encode", short_help="Packed codes of a file of any size; resumable.")
@options.model_argument
@options.features_argument
@options.output_option("Where the codes go: .parquet (columns id, code and kept ones) or .npy (uint8, codes alone).")
@click.option("--id-column", metavar="NAME", help="Column with the ids of the rows.  [default: id, if it can be]")
@click.option("--number-rows", is_flag=True, help="Ids are row numbers, though there is a column of ids.")
@click.option("--keep", metavar="NAMES", help="Columns to carry into the Parquet file, with commas between them.")
@options.batch_option
@options.answers
def encode_command(
    model: Path,
    features: str,
    output: Path,
    id_column: str | None,
    number_rows: bool,
    keep: str | None,
    batch_rows: int | None,
    bar: ProgressBar,
) -> options.Answer:
    """Write the packed codes of FEATURES, a file of rows of any size, in batches.

    Codes are kept batch by batch beside the output: after Ctrl-C or a kill the same command goes on, and the file comes
    out the same.
    """
    from hashlearn.files import encode_file

    refuse((number_rows and id_column is not None, "--number-rows: takes row numbers as ids; leave --id-column out"))
    if output.suffix.lower() != ".parquet":
        why = f"codes in a {output.suffix or 'file'} have no columns; write .parquet"
        refuse((id_column is not None, f"--id-column: {why}"), (keep is not None, f"--keep: {why}"))
    options.require_place(output, model, features)
    hasher = options.loaded(model, bar)
    columns = keep.split(",") if keep else []
    source = options.rows_for(hasher, features, "", id_column=False if number_rows else id_column, keep=columns)
    try:
        with refusals():
            done = encode_file(hasher, source, output, batch_rows=batch_rows, model_name=model.name, progress=bar)
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. The same command goes on where this one stopped.") from None
    resumed = f", {done.resumed_rows:,} of them from before" if done.resumed_rows else ""
    ids = "row numbers" if done.id_column is None else f"column {done.id_column!r}"
    lines = [
        ("codes", f"{output}  ({done.bytes:,} bytes)"),
        ("rows", f"{done.rows:,} of {done.n_bits} bits{resumed}"),
        ("ids", ids + (f", kept {keep}" if keep else "")),
        ("sha256", done.sha256),
    ]
    notes = []
    if source.columns.id is not None and done.id_column is None:
        notes.append(f"the ids in column {source.columns.id!r} were not kept; write .parquet to keep them")
    elif done.id_column is None and not number_rows and "id" in source.columns.unused:
        notes.append("column 'id' holds neither integers nor text nor UUIDs, so ids are row numbers")
    report = {"output": str(output), **done._asdict(), "kept": columns, "notes": notes}
    return report, lines


@click.command("evaluate", short_help="Score the codes: mean average precision, precision within a radius, k-NN.")
@options.model_argument
@options.database_option
@options.database_codes_option
@options.rows_option("--database-labels", "Their labels", required=True)
@options.queries_option
@options.rows_option("--query-labels", "Their labels", required=True)
@click.option("--radius", type=int, default=2, help="Radius in bits of the precision within a radius.")
@click.option("-k", type=int, help="Also precision and recall among the k nearest.")
@click.option("--neighbors", type=int, help="Also the accuracy of a vote of this many nearest rows.")
@click.option("--ties", default="expected", help="How equal distances are ranked: expected or stable.")
@click.option("--average", default="plain", help="Convention of average precision: plain, trapezoid or top_k.")
@click.option("--top-k", type=int, help="Average precision of this many nearest rows only.")
@options.batch_option
@options.answers
def evaluate_command(
    model: Path,
    database: str | None,
    database_codes: str | None,
    database_labels: str,
    queries: str,
    query_labels: str,
    batch_rows: int | None,
    bar: ProgressBar,
    **conventions: Any,
) -> options.Answer:
    """Score a Hamming ranking of the database for each query. Rows are relevant when they share a label.

    Labels are classes (n,), numbers or text, or 0/1 indicators (n, n_labels). All scores are fractions in [0, 1] in
    the JSON.
    """
    from hashlearn.files import read_labels
    from hashlearn.metrics import evaluate

    hasher = options.loaded(model, bar)
    with refusals("--query-labels"):
        labels_of_queries = read_labels(query_labels)
    with refusals("--database-labels"):
        labels = read_labels(database_labels)
    query_source = options.rows_for(hasher, queries, "--queries")
    query_codes = options.encoded(hasher, query_source, "--queries", bar, batch_rows)
    codes, _ = options.database_for(hasher, model, (database, database_codes), query_source, bar, batch_rows)
    bar.begin("counting")
    with refusals():
        scored = evaluate(query_codes, codes, labels_of_queries, labels, **conventions)
    titles = {
        "mean_average_precision": "mean average precision",
        "precision_within_radius": f"precision within {conventions['radius']} bits",
        "precision_at_k": f"precision at {conventions['k']}",
        "recall_at_k": f"recall at {conventions['k']}",
        "knn_accuracy": f"accuracy of {conventions['neighbors']} neighbors",
    }
    scores = {name: getattr(scored, name) for name in titles}
    about = {"model": str(model), "n_bits": hasher.n_bits, "n_database": len(codes), "n_queries": len(query_codes)}
    curve = {name: getattr(scored.curve, name)[: hasher.n_bits + 1].tolist() for name in ("precision", "recall")}
    counts = f"{len(query_codes):,} queries, {len(codes):,} database rows, {hasher.n_bits} bits"
    rows = [(titles[name], percent(score, 3)) for name, score in scores.items() if score is not None]
    return {**about, **conventions, **scores, "curve": curve}, [("of", counts), *rows]
