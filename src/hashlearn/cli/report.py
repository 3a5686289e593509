"""``hashlearn report``: stored results of ``hashlearn bench`` as a page, and its tables as CSV."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.core.progress import ProgressBar


@click.command("report", short_help="One self-contained HTML page from the stored results of bench.")
@click.argument("folder", type=click.Path(path_type=Path))
@options.output_option("Where the page goes.", "report.html")
@click.option("--title", help="Heading of the page.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="The tables as CSV, too.")
@options.answers
def report_command(
    folder: Path, output: Path, title: str | None, csv_file: Path | None, bar: ProgressBar
) -> tuple[dict[str, Any], str]:
    """Show the results that ``hashlearn bench`` stored in FOLDER, beside the paper's where the paper has them.

    The page needs no network and no script. Exit code 2 means bad input: no results, damaged ones, or ones that
    another version stored.
    """
    from hashlearn.experiments.bench import results
    from hashlearn.experiments.report.exports import as_csv
    from hashlearn.experiments.report.page import results_page

    bar.begin("reading results")
    options.require_place(output)
    if csv_file is not None:
        options.require_place(csv_file, option="--csv")
        if os.path.realpath(csv_file) == os.path.realpath(output):
            raise InputError("--output and --csv name the same file; name one for each")
    with refusals():
        found = results.read(folder)
        page = results_page(found, title=title)
    options.write_output(output, page)
    report = {"output": str(output), "cells": len(found.cells), "missing": len(found.missing)}
    text = f"{len(found.cells):,} cells shown, {len(found.missing):,} missing."
    if csv_file is not None:
        options.write_output(csv_file, as_csv(found))
        report["csv"] = str(csv_file)
        text += f" csv: {csv_file}."
    return report, f"{text} To look at: {output}"
