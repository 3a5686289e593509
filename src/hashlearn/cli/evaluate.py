"""``hashlearn evaluate MODEL``: how well the codes of queries find database rows of the same label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import refusals
from hashlearn.cli.progress import ProgressBar
from hashlearn.cli.text_tables import pairs, percent


@click.command("evaluate", short_help="Score the codes: mean average precision, precision within a radius, k-NN.")
@options.model_argument
@options.database_option
@options.database_codes_option
@options.rows_option("--database-labels", "Their labels", required=True)
@options.queries_option
@options.rows_option("--query-labels", "Their labels", required=True)
@click.option("--radius", type=int, default=2, help="Radius in bits of the precision within a radius.")
@click.option("-k", type=int, help="Also precision and recall among the k nearest.")
@click.option(
    "--neighbors", "--neighbours", "neighbors", type=int, help="Also the accuracy of a vote of this many nearest rows."
)
@click.option("--ties", default="expected", help="How equal distances are ranked.")
@click.option("--average", default="plain", help="Convention of average precision.")
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
) -> tuple[dict[str, Any], str]:
    """Score a Hamming ranking of the database for each query. Rows are relevant when they share a label.

    Labels are classes (n,), numbers or text, or 0/1 indicators (n, n_labels). All scores are fractions in [0, 1] in
    the JSON. Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.metrics import evaluate
    from hashlearn.streams import read_labels

    hasher = options.loaded(model, bar)
    with refusals("--query-labels"):
        wanted_labels = read_labels(query_labels)
    with refusals("--database-labels"):
        labels = read_labels(database_labels)
    wanted, _ = options.codes_for(hasher, queries, None, "--queries", bar, batch_rows)
    codes, _ = options.codes_for(hasher, database, database_codes, "--database", bar, batch_rows)
    bar.begin("counting")
    with refusals():
        found = evaluate(wanted, codes, wanted_labels, labels, **conventions)
    titles = {
        "mean_average_precision": "mean average precision",
        "precision_within_radius": f"precision within {found.radius} bits",
        "precision_at_k": f"precision at {found.k}",
        "recall_at_k": f"recall at {found.k}",
        "knn_accuracy": f"accuracy of {found.neighbors} neighbors",
    }
    scores = {name: getattr(found, name) for name in titles}
    about = {"model": str(model), "n_bits": hasher.n_bits, "n_database": len(codes), "n_queries": len(wanted)}
    curve = {name: getattr(found.curve, name)[: hasher.n_bits + 1].tolist() for name in ("precision", "recall")}
    counts = f"{len(wanted):,} queries, {len(codes):,} database rows, {hasher.n_bits} bits"
    rows = [(titles[name], percent(score)) for name, score in scores.items() if score is not None]
    return {**about, **conventions, **scores, "curve": curve}, pairs([("of", counts), *rows])
