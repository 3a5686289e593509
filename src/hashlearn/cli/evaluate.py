"""``hashlearn evaluate MODEL``: how well the codes of queries find database rows of the same label."""

from __future__ import annotations

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
from hashlearn.cli.text_tables import pairs, percent


@click.command("evaluate", short_help="Score the codes: mean average precision, precision within a radius, k-NN.")
@model_argument
@rows_option("--database", "Rows to search")
@rows_option("--database-codes", "Instead: their codes, as encode wrote them", formats="npy or Parquet")
@rows_option("--database-labels", "Their labels", required=True)
@rows_option("--queries", "Rows to search for", required=True)
@rows_option("--query-labels", "Their labels", required=True)
@click.option("--radius", type=int, default=2, show_default=True, help="Of the precision within a radius.")
@click.option("-k", type=int, help="Also precision and recall among the k nearest.")
@click.option(
    "--neighbors", "--neighbours", "neighbors", type=int, help="Also the accuracy of a vote of the N nearest rows."
)
@click.option("--ties", default="expected", show_default=True, help="How equal distances are ranked.")
@click.option("--average", default="plain", show_default=True, help="Convention of average precision.")
@click.option("--top-k", type=int, help="Average precision of so many nearest rows only.")
@batch_option
@json_option
@quiet_option
def evaluate_command(
    model: Path,
    database: str | None,
    database_codes: str | None,
    database_labels: str,
    queries: str,
    query_labels: str,
    batch_rows: int | None,
    as_json: bool,
    quiet: bool,
    **conventions: Any,
) -> None:
    """Score a Hamming ranking of the database for each query. Rows are relevant when they share a label.

    Labels are classes (n,), numbers or text, or 0/1 indicators (n, n_labels). All scores are fractions in [0, 1] in
    the JSON. Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.metrics import evaluate
    from hashlearn.streams import read_labels

    with Steps(quiet) as steps:
        steps.begin("loading the model")
        hasher = loaded(model)
        with refusals("--query-labels"):
            wanted_labels = read_labels(query_labels)
        with refusals("--database-labels"):
            labels = read_labels(database_labels)
        wanted, _ = codes_for(hasher, queries, None, "--queries", steps, batch_rows)
        codes, _ = codes_for(hasher, database, database_codes, "--database", steps, batch_rows)
        steps.begin("counting")
        with refusals():
            found = evaluate(wanted, codes, wanted_labels, labels, **conventions)
    scores = {
        "mean_average_precision": found.mean_average_precision,
        "precision_within_radius": found.precision_within_radius,
        "precision_at_k": found.precision_at_k,
        "recall_at_k": found.recall_at_k,
        "knn_accuracy": found.knn_accuracy,
    }
    about = {"model": str(model), "n_bits": hasher.n_bits, "n_database": len(codes), "n_queries": len(wanted)}
    curve = {name: getattr(found.curve, name)[: hasher.n_bits + 1].tolist() for name in ("precision", "recall")}
    names = {
        "mean_average_precision": "mean average precision",
        "precision_within_radius": f"precision within {found.radius} bits",
        "precision_at_k": f"precision at {found.k}",
        "recall_at_k": f"recall at {found.k}",
        "knn_accuracy": f"accuracy of {found.neighbors} neighbors",
    }
    rows = [(names[name], percent(score)) for name, score in scores.items() if score is not None]
    counts = f"{len(wanted):,} queries, {len(codes):,} database rows, {hasher.n_bits} bits"
    show(as_json, {**about, **conventions, **scores, "curve": curve}, pairs([("of", counts), *rows]))
