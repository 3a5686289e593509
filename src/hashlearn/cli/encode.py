"""``hashlearn encode MODEL FEATURES -o CODES``: packed codes of a file of any size, resumable."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import Interrupted, refusals
from hashlearn.cli.progress import ProgressBar
from hashlearn.cli.text_tables import pairs, seconds


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
