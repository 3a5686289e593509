"""``hashlearn report``: stored results of ``hashlearn bench`` as a page, and as CSV, LaTeX and SVG files."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hashlearn.cli import options
from hashlearn.cli.exits import InputError, refusals


@click.command("report", short_help="One self-contained HTML page from the stored results of bench.")
@click.argument("folder", type=click.Path(path_type=Path))
@options.output_option("Where the page goes.", "report.html")
@click.option("--title", help="Heading of the page.")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="The tables as CSV, too.")
@click.option("--latex", "latex_file", type=click.Path(path_type=Path), help="The tables for LaTeX (booktabs), too.")
@click.option("--svg", "svg_folder", type=click.Path(path_type=Path), help="Folder for the figures as SVG files, too.")
@options.json_option
def report_command(
    folder: Path,
    output: Path,
    title: str | None,
    csv_file: Path | None,
    latex_file: Path | None,
    svg_folder: Path | None,
    as_json: bool,
) -> None:
    """Show the results that ``hashlearn bench`` stored in FOLDER, beside the paper's where the paper has them.

    The page needs no network and no script. Exit code 2 means bad input: no results, damaged ones, or ones that
    another version stored.
    """
    from hashlearn.experiments.bench import results
    from hashlearn.experiments.report import exports
    from hashlearn.experiments.report.page import results_page

    outputs = {"--output": output, "--csv": csv_file, "--latex": latex_file}
    places = {option: place for option, place in outputs.items() if place is not None}
    for option, place in places.items():
        options.require_place(place, option=option)
    if len({os.path.realpath(place) for place in places.values()}) < len(places):
        raise InputError("--output, --csv and --latex: two of them name the same file; name one for each")
    with refusals():
        found = results.read(folder)
        page = results_page(found, title=title)
    options.write_output(output, page)
    written = {"output": str(output)}
    for name, file, content in (("csv", csv_file, exports.as_csv), ("latex", latex_file, exports.as_latex)):
        if file is not None:
            options.write_output(file, content(found))
            written[name] = str(file)
    if svg_folder is not None:
        written["svg"] = str(svg_folder)
        with refusals("--svg"):
            svg_folder.mkdir(parents=True, exist_ok=True)
        for name, picture in exports.as_svgs(found).items():
            options.write_output(svg_folder / name, picture)
    cells, missing = len(found.cells), len(found.missing)
    others = "".join(f" {name}: {path}." for name, path in written.items() if name != "output")
    report = {**written, "cells": cells, "missing": missing}
    options.show(as_json, report, f"{cells:,} cells shown, {missing:,} missing.{others} To look at: {output}")
