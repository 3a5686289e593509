"""``hashlearn onnx MODEL -o encoder.onnx``: the encoder of a model for any runtime of ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.core.progress import ProgressBar


@click.command("onnx", short_help="The encoder of a model as an ONNX graph, compared with encode.")
@options.model_argument
@options.output_option("Where the graph goes, .onnx.")
@options.rows_option("--sample", "Rows to compare on; without, made-up ones")
@click.option("--dtype", type=click.Choice(["float64", "float32"]), default="float64", help="Type of its input.")
@click.option("--opset", type=int, default=18, help="Version of the standard operators.")
@options.answers
def onnx_command(model: Path, output: Path, sample: str | None, bar: ProgressBar, **settings: Any) -> options.Answer:
    """Write features → margins → packed codes as an ONNX graph, once onnxruntime gave the codes of encode."""
    from hashlearn.persistence import export_onnx

    options.require_place(output, model, sample)
    if output.suffix.lower() != ".onnx":
        raise InputError(f"--output {output}: a graph is written as .onnx, got {output.suffix or 'no ending'!r}")
    hasher = options.loaded(model, bar)
    rows = None if sample is None else options.rows_for(hasher, sample, "--sample")
    bar.begin("exporting and comparing")
    with refusals():
        report = export_onnx(hasher, output, sample=None if rows is None else rows.read(), **settings)
    lines = [
        ("graph", f"{output}  ({report.bytes:,} bytes, opset {report.opset}, {report.dtype})"),
        ("compared", f"{report.bits:,} bits of {report.rows:,} rows, {report.differing} differ"),
        ("near zero", f"{report.within_rounding} margin(s) are 0 up to rounding"),
    ]
    return {"output": str(output), **report._asdict()}, lines
