"""``hashlearn report``: stored results of ``hashlearn bench`` as a page, and its tables as CSV."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals
from hashlearn.core.progress import ProgressBar


@click.command("report", short_help="One self-contained HTML page from the stored results of bench.")
@click.argument("folder", type=click.Path(path_type=Path))
@options.output_option("Where the page goes.", "report.html")
@click.option("--title", help="Heading of the page.")
@options.file_option("--csv", "The tables as CSV, too.")
@options.answers
def report_command(folder: Path, output: Path, title: str | None, csv: Path | None, bar: ProgressBar) -> options.Answer:
    """Show the results that ``hashlearn bench`` stored in FOLDER, beside the paper's where the paper has them.

    The page needs no network and no script. It shows what was asked last of each table and data set. Damaged results
    are refused; those of another version or with other options are ignored.
    """
    from hashlearn.experiments.bench import results
    from hashlearn.experiments.report.exports import as_csv
    from hashlearn.experiments.report.page import results_page

    bar.begin("reading results")
    options.require_place(output)
    if csv is not None:
        options.require_place(csv, option="--csv")
        if os.path.realpath(csv) == os.path.realpath(output):
            raise InputError("--output and --csv name the same file; name one for each")
    with refusals():
        tables = results.read(folder)
        page = results_page(tables, title=title)
    options.write_output(output, page)
    report = {"output": str(output), "cells": len(tables.cells), "missing": len(tables.missing)}
    text = f"{len(tables.cells):,} cells shown, {len(tables.missing):,} missing."
    if csv is not None:
        options.write_output(csv, as_csv(tables))
        report["csv"] = str(csv)
        text += f" csv: {csv}."
    return report, f"{text} To look at: {output}"
