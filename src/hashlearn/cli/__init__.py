"""The ``hashlearn`` command: argument parsing and printing only.

Each command imports what it needs when it runs, so that ``hashlearn --help`` answers at once. Exit codes: 0 for an
answer, 1 where it could not be done here (no space, no memory, a package missing), 2 for bad input, each with a message
on standard error and no traceback, 130 after Ctrl-C, even where the best so far was printed.
"""

from __future__ import annotations

import io
import os
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
from hashlearn.cli.exits import INTERRUPTED, Failure, InputError, end_with
from hashlearn.cli.export import export_command
from hashlearn.cli.fit import fit_command
from hashlearn.cli.report import report_command
from hashlearn.cli.search import search_command
from hashlearn.cli.tune import tune_command


class _Commands(click.Group):
    """A group in which Ctrl-C, and what the system refuses, end any command with one line and an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the whole command line; ``--help`` and ``--version`` write to standard output as well."""
        try:
            return super().main(*args, **extra)
        except (MemoryError, OSError) as error:
            end_with(error)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse, for all commands, what the system could not have given us, nor take as the name of a file."""
        for argument in args:
            try:
                fits = b"\0" not in os.fsencode(argument)
            except UnicodeEncodeError:
                fits = False
            if not fits:
                raise InputError(f"{argument!a}: has a character that no file name can have")
        return super().parse_args(ctx, args)

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
    try:
        os.getcwd()
    except FileNotFoundError:
        raise Failure("the current folder does not exist any more; change to another one") from None
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
