"""``hashlearn report FOLDER``: one page to look at, from what ``hashlearn bench`` stored."""

from __future__ import annotations

from pathlib import Path

import click

from hashlearn.cli.exits import InputError, refusals
from hashlearn.cli.inputs import json_option, require_place, show


@click.command("report", short_help="One self-contained HTML page from the stored results of bench.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Where the page goes.",
)
@click.option("--title", help="Heading of the page.")
@json_option
def report_command(folder: Path, output: Path, title: str | None, as_json: bool) -> None:
    """Show the results that ``hashlearn bench`` stored in FOLDER, each table beside the paper's.

    The page needs no network and no script. Exit code 2 means bad input: no results, damaged ones, or ones that
    another version stored.
    """
    from hashlearn.core.atomic_files import write_atomically
    from hashlearn.experiments.bench import results
    from hashlearn.experiments.report import results_page
    from hashlearn.experiments.report.page import TITLE

    require_place(output)
    try:
        found = results.read(folder)
        page = results_page(found, title=title or TITLE)
    except ValueError as error:
        raise InputError(str(error)) from None
    with refusals("--output"):
        write_atomically(output, [page.encode()])
    cells, missing = len(found.cells), len(found.missing)
    report = {"output": str(output), "cells": cells, "missing": missing}
    show(as_json, report, f"{cells:,} cells shown, {missing:,} missing. To look at: {output}")
