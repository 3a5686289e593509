"""The ``hashlearn`` command: argument parsing and printing only.

Each command imports what it needs when it runs, so that ``hashlearn --help`` answers at once. Exit codes: 0 for an
answer; 1 if it cannot be done here (no space, no memory, a package missing); 2 for bad input; 130 after Ctrl-C, even
if the best answer so far was printed. Errors 1 and 2 print a message on standard error and no traceback.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Any

import click

from hashlearn import __version__
from hashlearn.cli.exits import Failure, Interrupted, end_with

# Modules with commands, in the order of the help.
COMMANDS = (
    "demo",
    "compress",
    "fit",
    "tune",
    "models",
    "search",
    "export",
    "onnx",
    "describe",
    "duplicates",
    "explore",
    "experiments",
    "report",
    "bqp",
    "bqp_verify",
)
NO_ANSWER = "Interrupted before there was an answer."


class _Commands(click.Group):
    """A group in which Ctrl-C and errors of the system end any command with one line and an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the whole command line; ``--help`` and ``--version`` write to standard output as well."""
        if not extra.get("standalone_mode", True):
            return super().main(*args, **extra)
        try:
            # In its standalone mode, click ends with exit code 1 after Ctrl-C outside of a command.
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except (click.Abort, KeyboardInterrupt) as error:
            if isinstance(error.__cause__, EOFError):  # click turns it into Abort, but it is an error of the program
                raise error.__cause__ from None
            end_with(Interrupted(NO_ANSWER))
        except (click.ClickException, MemoryError, OSError) as error:
            end_with(error)
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted(NO_ANSWER) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(__version__, prog_name="hashlearn")
def main() -> None:
    """Learned binary codes, and the certified solvers for the binary quadratic problems behind them.

    Files of rows are npy, npz, Parquet or CSV; FILE::NAME picks an array of an npz or columns of a table. Exit codes: 0
    for an answer, 1 if it cannot be done here (no space, a package missing), 2 for bad input, 130 after Ctrl-C.
    """
    try:
        os.getcwd()
    except FileNotFoundError:
        raise Failure("the current folder does not exist any more; change to another one") from None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows "?", not a traceback


for name in COMMANDS:
    for command in vars(import_module(f"hashlearn.cli.{name}")).values():
        if isinstance(command, click.Command):
            main.add_command(command)
