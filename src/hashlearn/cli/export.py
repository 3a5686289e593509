"""``hashlearn export MODEL -o model.onnx``: the encoder for other runtimes, compared with ours before it is written."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.cli.progress import ProgressBar
from hashlearn.cli.text_tables import pairs


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
