"""``hashlearn encode MODEL FEATURES -o CODES``: packed codes of a file of any size, resumable."""

from __future__ import annotations

import time
from pathlib import Path

import click

from hashlearn.cli.exits import INTERRUPTED, refusals
from hashlearn.cli.inputs import (
    batch_option,
    json_option,
    loaded,
    model_argument,
    quiet_option,
    require_place,
    rows_for,
    show,
)
from hashlearn.cli.steps import Steps
from hashlearn.cli.text_tables import pairs, seconds


@click.command("encode", short_help="Packed codes of a file of any size; resumable.")
@model_argument
@click.argument("features", metavar="FEATURES")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    required=True,
    help="Where the codes go: .npy (uint8, a row a code) or .parquet (columns id and code).",
)
@batch_option
@json_option
@quiet_option
@click.pass_context
def encode_command(
    ctx: click.Context,
    model: Path,
    features: str,
    output: Path,
    batch_rows: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the packed codes of FEATURES, a file of rows of any size, in batches.

    FEATURES is npy, npz or Parquet; FILE::NAME picks an array of an npz or columns of a Parquet file. Codes are kept
    batch by batch beside the output: after Ctrl-C or a kill the same command goes on, and the file comes out the same.
    Exit code 1: it cannot be done here, 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.streams import encode_file

    require_place(output, model, features)
    with Steps(quiet) as steps:
        steps.begin("loading the model")
        hasher = loaded(model)
        source = rows_for(hasher, features, "")
        began = time.perf_counter()
        try:
            with refusals():
                done = encode_file(
                    hasher,
                    source,
                    output,
                    batch_rows=batch_rows,
                    progress=steps,
                )
        except KeyboardInterrupt:
            click.echo("Interrupted. The same command goes on where this one stopped.", err=True)
            ctx.exit(INTERRUPTED)
        spent = time.perf_counter() - began
    report = {"output": str(output), **done._asdict(), "seconds": spent}
    resumed = f", {done.resumed_rows:,} of them from before" if done.resumed_rows else ""
    text = [
        ("codes", f"{output}  ({done.bytes:,} bytes)"),
        ("rows", f"{done.rows:,} of {done.n_bits} bits{resumed}"),
        ("sha256", done.sha256),
        ("seconds", seconds(spent)),
    ]
    show(as_json, report, pairs(text))
