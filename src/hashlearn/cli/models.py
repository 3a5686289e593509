"""Commands that use a model file: ``hashlearn encode``, ``evaluate`` and ``export``."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, Interrupted, refusals
from hashlearn.cli.progress import ProgressBar
from hashlearn.cli.text_tables import pairs, percent, seconds


@click.command("encode", short_help="Packed codes of a file of any size; resumable.")
@options.model_argument
@options.features_argument
@options.output_option("Where the codes go: .npy (uint8, a row a code) or .parquet (columns id and code).")
@options.batch_option
@options.answers
def encode_command(
    model: Path, features: str, output: Path, batch_rows: int | None, bar: ProgressBar
) -> tuple[dict[str, Any], str]:
    """Write the packed codes of FEATURES, a file of rows of any size, in batches.

    FEATURES is npy, npz or Parquet; FILE::NAME picks an array of an npz or columns of a Parquet file. Codes are kept
    batch by batch beside the output: after Ctrl-C or a kill the same command goes on, and the file comes out the same.
    Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.streams import encode_file

    options.require_place(output, model, features)
    hasher = options.loaded(model, bar)
    source = options.rows_for(hasher, features, "")
    began = time.perf_counter()
    try:
        with refusals():
            done = encode_file(hasher, source, output, batch_rows=batch_rows, progress=bar)
    except KeyboardInterrupt:
        raise Interrupted("Interrupted. The same command goes on where this one stopped.") from None
    spent = time.perf_counter() - began
    resumed = f", {done.resumed_rows:,} of them from before" if done.resumed_rows else ""
    text = [
        ("codes", f"{output}  ({done.bytes:,} bytes)"),
        ("rows", f"{done.rows:,} of {done.n_bits} bits{resumed}"),
        ("sha256", done.sha256),
        ("seconds", seconds(spent)),
    ]
    return {"output": str(output), **done._asdict(), "seconds": spent}, pairs(text)


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


@click.command("export", short_help="The encoder of a model as ONNX, compared with encode.")
@options.model_argument
@options.output_option("Where the graph goes: .onnx.")
@options.rows_option("--sample", "Rows to compare on; without, made-up ones")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", help="Type of its input.")
@click.option("--opset", type=int, help="Version of the standard operators.  [default: 18]")
@options.answers
def export_command(
    model: Path, output: Path, sample: str | None, dtype: str, opset: int | None, bar: ProgressBar
) -> tuple[dict[str, Any], str]:
    """Write features → margins → packed codes as an ONNX graph, once onnxruntime gave the codes of encode.

    Exit code 1: it cannot be done here (is hashlearn[onnx] installed?), 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.persistence import export_onnx
    from hashlearn.persistence.onnx_export import OPSET

    options.require_place(output, model, sample)
    if output.suffix.lower() != ".onnx":
        raise InputError(f"--output {output}: a graph is written as .onnx, got {output.suffix or 'no ending'!r}")
    hasher = options.loaded(model, bar)
    rows = None if sample is None else options.rows_for(hasher, sample, "--sample")
    bar.begin("exporting and comparing")
    with refusals(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were compared
        X = None if rows is None else rows.read()
        found = export_onnx(hasher, output, sample=X, dtype=dtype, opset=OPSET if opset is None else opset)
    text = [
        ("graph", f"{output}  ({found.bytes:,} bytes, opset {found.opset}, {found.dtype})"),
        ("compared", f"{found.bits:,} bits of {found.rows:,} rows, {found.differing} differ"),
        ("near zero", f"{found.within_rounding} margin(s) are 0 up to rounding"),
    ]
    return {"output": str(output), **found._asdict()}, pairs(text)
