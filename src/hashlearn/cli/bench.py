"""``hashlearn bench TABLE``: run the paper's experiments, store every result, show the table."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn import __version__
from hashlearn.cli.exits import FAILED, INTERRUPTED, InputError
from hashlearn.cli.inputs import json_option

if TYPE_CHECKING:
    from hashlearn.experiments.bench.eta import RunProgress
    from hashlearn.experiments.bench.results import Results
    from hashlearn.experiments.bench.run import Outcome
    from hashlearn.experiments.bench.tables import Cell, Plan

SHOWN_FAILURES = 10
SHAPE = "{bar:20} {n_fmt}/{total_fmt} cells, {elapsed}{postfix}  {desc}"
SECONDS_BETWEEN_DRAWS = 0.1


@click.command("bench", short_help="Run the paper's experiments; resumable, every result stored.")
@click.argument("table")
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="NAMES",
    help="Data sets, or paths of .npz files with X and y; several with commas or repeated.  [default: the table's]",
)
@click.option("--methods", metavar="NAMES", help="Such as SDR,AL.  [default: the table's]")
@click.option("--bits", metavar="NUMBERS", help="Code lengths, such as 8,16.  [default: the table's]")
@click.option(
    "--draws", type=click.IntRange(1, 1000), default=3, show_default=True, help="Random draws of the training samples."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for the results; what it holds already is not run again.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes at a time, where memory allows; one uses all cores.",
)
@json_option
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.pass_context
def bench_command(
    ctx: click.Context,
    table: str,
    datasets: tuple[str, ...],
    methods: str | None,
    bits: str | None,
    draws: int,
    out: Path,
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run one of the paper's tables: inference, supervised, unsupervised or knn; or one of two more: unseen (classes
    that nothing was learned from) or neighbors (nearest rows of the original vectors).

    A file needs labels y in every table: training samples are drawn class by class. Where it has a split, its rows
    marked "test" are the queries, and are neither searched nor learned from.

    Each cell (a method, a code length, a draw) is stored in a file of its own as soon as it is done. After Ctrl-C or
    a kill the same command runs only what is missing. Exit code 1: cells failed, 2: bad input, 130: Ctrl-C.
    """
    from hashlearn.experiments.bench import results
    from hashlearn.experiments.bench.run import run
    from hashlearn.experiments.bench.tables import plan
    from hashlearn.experiments.datasets import known

    try:
        wanted = plan(
            table,
            [name for given in datasets for name in _split(given, "--dataset")],
            _split(methods, "--methods"),
            _numbers(bits),
            draws,
            [data.name for data in known()],
        )
        interrupted = False
        with _Cells(quiet) as cells:
            try:
                outcome = run(wanted, out, jobs=jobs, progress=cells)
            except KeyboardInterrupt:
                interrupted = True
        found = results.read(out, wanted.cells)
    except ValueError as error:
        raise InputError(str(error)) from None
    if not interrupted and outcome.not_loaded and not found.records:
        raise InputError("\n".join(f"{name}: {why}" for name, why in outcome.not_loaded.items()))
    if as_json:
        click.echo(json.dumps(_report(wanted, found, out), allow_nan=False))
    else:
        click.echo(f"hashlearn {__version__}, table {wanted.table.name!r}\n")
        click.echo(_tables(wanted, found))
        click.echo(_missing(wanted, found), nl=False)
    if interrupted:
        click.echo("Interrupted. The same command goes on where this one stopped.", err=True)
        ctx.exit(INTERRUPTED)
    click.echo(_ending(outcome, out), err=as_json)
    if outcome.failed or outcome.not_loaded:
        ctx.exit(FAILED)


def _split(given: str | None, option: str) -> list[str]:
    if given is None:
        return []
    parts = [part.strip() for part in given.split(",")]
    if not all(parts):
        raise ValueError(f"{option} must be names with commas between them, got {given!r}")
    return parts


def _numbers(given: str | None) -> list[int]:
    try:
        return [int(part) for part in _split(given, "--bits")]
    except ValueError:
        raise ValueError(f"--bits must be whole numbers with commas between them, got {given!r}") from None


def _report(plan: Plan, found: Results, out: Path) -> dict[str, Any]:
    """What --json prints: values in per cent, one for each draw, by data set, metric, method and code length."""
    from hashlearn.experiments.bench.summary import summarise

    values: dict[str, Any] = {}
    for dataset in plan.datasets:
        for metric in dict.fromkeys((*plan.table.shown_metrics, "map")):
            shown = summarise(found, plan.table.name, dataset, metric, plan.methods, plan.bits)
            values.setdefault(dataset, {})[metric] = {
                method: {n_bits: {"values": entry.values, "paper": entry.paper} for n_bits, entry in row.items()}
                for method, row in shown.rows.items()
            }
    failed = {str(cell): why for cell, why in found.failed.items()}
    missing = [str(cell) for cell in found.missing]
    return {"table": plan.table.name, "results": str(out), "values": values, "missing": missing, "failed": failed}


def _tables(plan: Plan, found: Results) -> str:
    """The table's own metric and the mean average precision, for each data set."""
    from hashlearn.experiments.bench.summary import summarise

    parts = []
    for dataset in plan.datasets:
        for metric in dict.fromkeys((*plan.table.shown_metrics, "map")):
            shown = summarise(found, plan.table.name, dataset, metric, plan.methods, plan.bits)
            parts.append(f"{shown.title}\n\n{shown.markdown()}\n")
        if shown.protocol:
            parts.append(f"{shown.protocol}\n")
    return "\n".join(parts)


def _missing(plan: Plan, found: Results) -> str:
    """What was asked for and is not there, and why."""
    lines = []
    if plan.missing_methods:
        lines.append(f"Missing methods, not in this version: {', '.join(plan.missing_methods)}")
    absent = [cell for cell in found.missing if cell.method not in plan.missing_methods]
    tried = {cell: found.failed[cell] for cell in absent if cell in found.failed}
    lines += _grouped("Failed", tried)
    waiting = [cell for cell in absent if cell not in tried]
    if waiting:
        lines.append(f"Not run: {len(waiting)} of {len(plan.cells)} cells, {_few([str(cell) for cell in waiting])}")
    return "".join(f"{line}\n" for line in lines)


def _grouped(title: str, errors: dict[Cell, str]) -> list[str]:
    """Errors with the cells that had them; the same error of many cells is one line."""
    lines = []
    for error, count in Counter(errors.values()).most_common():
        cells = [str(cell) for cell, text in errors.items() if text == error]
        lines.append(f"{title}: {count} cell(s), {_few(cells)}: {error}")
    return lines


def _few(names: list[str]) -> str:
    shown = "; ".join(names[:SHOWN_FAILURES])
    return shown if len(names) <= SHOWN_FAILURES else f"{shown}; and {len(names) - SHOWN_FAILURES} more"


def _ending(outcome: Outcome, out: Path) -> str:
    lines = [f"{name}: {why}" for name, why in outcome.not_loaded.items()] + outcome.notes
    done = len(outcome.finished) - len(outcome.failed)
    lines.append(f"{done} cell(s) run, {outcome.n_stored_before} stored before. Results: {out}")
    return "\n".join(lines)


class _Cells:
    """A bar over the cells, with the time left, on standard error if that is a terminal."""

    def __init__(self, quiet: bool) -> None:
        from tqdm import tqdm

        self._drawn = -float("inf")
        self._bar = tqdm(
            file=sys.stderr, disable=True if quiet else None, leave=False, bar_format=SHAPE, dynamic_ncols=True
        )

    def __call__(self, progress: RunProgress) -> None:
        """Redraw, if the last drawing is old enough to be worth it."""
        now = time.monotonic()
        if self._bar.disable or now - self._drawn < SECONDS_BETWEEN_DRAWS:
            return
        self._drawn = now
        self._bar.total, self._bar.n = progress.total, progress.done
        left = progress.seconds_left
        self._bar.set_postfix_str("" if left is None else f"about {_duration(left)} left", refresh=False)
        self._bar.set_description_str(progress.stage)

    def __enter__(self) -> _Cells:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


def _duration(seconds: float) -> str:
    """In words that do not pretend to be exact.

    >>> _duration(42.4), _duration(400.0), _duration(20000.0)
    ('42 s', '7 min', '5.6 h')
    """
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
