"""The ``hashlearn`` command: argument parsing and printing only.

Each command imports what it needs when it runs, so that ``hashlearn --help`` answers at once. Exit codes: 0 for an
answer, 1 where it could not be done here (no space, no memory, a package missing), 2 for bad input, each with a message
on standard error and no traceback, 130 after Ctrl-C, even where the best so far was printed.
"""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from hashlearn import __version__
from hashlearn.cli.bench import bench_command
from hashlearn.cli.bqp import bqp_command
from hashlearn.cli.datasets import datasets_command
from hashlearn.cli.demo import demo_command
from hashlearn.cli.encode import encode_command
from hashlearn.cli.evaluate import evaluate_command
from hashlearn.cli.exits import INTERRUPTED
from hashlearn.cli.export import export_command
from hashlearn.cli.fit import fit_command
from hashlearn.cli.report import report_command
from hashlearn.cli.search import search_command
from hashlearn.cli.tune import tune_command


class _Commands(click.Group):
    """A group in which Ctrl-C ends any command with one line and the exit code that shells expect."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Interrupted before there was an answer.", err=True)
            ctx.exit(INTERRUPTED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hashlearn")
def main() -> None:
    """Learned binary codes, and the certified solvers for the binary quadratic problems behind them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows "?", not a traceback


for command in (
    demo_command,
    fit_command,
    tune_command,
    encode_command,
    search_command,
    evaluate_command,
    export_command,
    bench_command,
    report_command,
    datasets_command,
    bqp_command,
):
    main.add_command(command)
