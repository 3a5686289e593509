"""``hashlearn report FOLDER``: one page to look at, from what ``hashlearn bench`` stored."""

from __future__ import annotations

from pathlib import Path

import click

from hashlearn.cli import options
from hashlearn.cli.exits import refusals


@click.command("report", short_help="One self-contained HTML page from the stored results of bench.")
@click.argument("folder", type=click.Path(path_type=Path))
@options.output_option("Where the page goes.", "report.html")
@click.option("--title", help="Heading of the page.")
@options.json_option
def report_command(folder: Path, output: Path, title: str | None, as_json: bool) -> None:
    """Show the results that ``hashlearn bench`` stored in FOLDER, each table beside the paper's.

    The page needs no network and no script. Exit code 2 means bad input: no results, damaged ones, or ones that
    another version stored.
    """
    from hashlearn.experiments.bench import results
    from hashlearn.experiments.report import results_page
    from hashlearn.experiments.report.page import TITLE

    options.require_place(output)
    with refusals():
        found = results.read(folder)
        page = results_page(found, title=title or TITLE)
    options.write_output(output, page)
    cells, missing = len(found.cells), len(found.missing)
    report = {"output": str(output), "cells": cells, "missing": missing}
    options.show(as_json, report, f"{cells:,} cells shown, {missing:,} missing. To look at: {output}")
