"""Experiments, the paper's and yours: ``hashlearn bench`` runs them, ``datasets`` lists their data."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn import __version__
from hashlearn.cli import options
from hashlearn.cli.exits import FAILED, InputError, Interrupted, refusals
from hashlearn.cli.text_tables import pairs
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import ABSENT
from hashlearn.pages.tables import text_table

if TYPE_CHECKING:
    from hashlearn.core.progress import Progress
    from hashlearn.experiments.bench.plans import Plan
    from hashlearn.experiments.bench.results import Results
    from hashlearn.experiments.bench.run import Outcome
    from hashlearn.experiments.bench.summary import Summary
    from hashlearn.experiments.bench.tables import Cell
    from hashlearn.experiments.datasets import Known

SHOWN_CELLS = 10
DATASETS_HELP = (
    "Data sets, or paths of .npz, .npy or .parquet files; several with commas or repeated.  [default: the table's]"
)
METHODS_HELP = "Such as SDR,AL, or my_module:MyHasher for a hasher of yours.  [default: the table's]"
PROTOCOL_HELP = (
    "How samples are drawn: own (the file's split), 120, 500, 100, knn, digits, all-rows, unseen-120, unseen-500, "
    "unseen-100 or unseen-digits.  [default: own if a file has a split, else the table's]"
)
DRAWS_HELP = (
    "Runs of each cell. The number of a draw is the seed of the method and of the samples that the protocol draws; "
    "own draws none, so all its draws learn from the same rows."
)
METRIC_HELP = (
    "map, map@K, p@N (of the first N) or precision-radius (within 2 bits; precision@2 in a CSV), repeatable, the most "
    "important first.  [default: the table's]"
)
DATASETS_HEADER = ("data set", "samples", "present", "features (default first)")


@click.command("bench", short_help="Run the paper's experiments; resumable, every result stored.")
@click.argument("table")
@click.argument("data", nargs=-1, metavar="[DATA]...")
@click.option("--dataset", "datasets", multiple=True, metavar="NAMES", help=DATASETS_HELP)
@click.option("--methods", metavar="NAMES", help=METHODS_HELP)
@click.option("--bits", metavar="NUMBERS", help="Code lengths, such as 8,16.  [default: the table's]")
@click.option("--protocol", metavar="NAME", help=PROTOCOL_HELP)
@click.option(
    "--train-per-class", metavar="N|all", help="Labels to learn from in each class.  [default: the protocol's]"
)
@click.option("--queries", type=click.IntRange(1), help="At most this many queries in all, drawn at random.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help=METRIC_HELP)
@click.option("--draws", type=click.IntRange(1, 1000), default=3, help=DRAWS_HELP)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="results",
    help="Folder for the results; what it holds already is not run again.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, help="Processes at a time; one uses all cores.")
@options.json_option
@options.quiet_option
def bench_command(
    table: str,
    data: tuple[str, ...],
    datasets: tuple[str, ...],
    methods: str | None,
    bits: str | None,
    protocol: str | None,
    train_per_class: str | None,
    queries: int | None,
    metrics: tuple[str, ...],
    draws: int,
    out: Path,
    jobs: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run one of the paper's tables: inference, supervised, unsupervised or knn; or one of two more: unseen (classes
    that nothing was learned from) or neighbors (nearest rows of the original vectors). DATA names data sets as
    --dataset does.

    If a file has a split, its rows marked "train" are learned from and searched, and its rows marked "test" are the
    queries. Files without labels y can be used in the table neighbors.

    A class of yours is a hashlearn.hashers.BaseHasher with fit(X) or fit(X, y), and decision_function(X).

    Each cell (a method, a code length, a draw) is stored in a file of its own as soon as it is done. After Ctrl-C or
    a kill the same command runs only what is missing; with other options, other rows or another version of your class
    it runs what these change. Where standard error is no terminal, a line tells of every cell that has ended. Exit
    code 1 if cells failed.
    """
    from hashlearn.experiments.bench import results
    from hashlearn.experiments.bench.choices import Choice
    from hashlearn.experiments.bench.plans import plan
    from hashlearn.experiments.bench.run import run
    from hashlearn.experiments.datasets import known

    outcome: Outcome | None = None
    with refusals():
        names = [name for given in (*data, *datasets) for name in _dataset_names(given)]
        present = [found.name for found in known()]
        train = int(train_per_class) if train_per_class and train_per_class.isdecimal() else train_per_class
        choice = Choice(protocol, train, queries, metrics)
        wanted = plan(table, names, _split(methods, "--methods"), _numbers(bits, "--bits"), draws, present, choice)
        with ProgressBar(quiet) as bar, suppress(KeyboardInterrupt):
            in_lines = not quiet and not sys.stderr.isatty()
            outcome = run(wanted, out, jobs=jobs, progress=_Lines() if in_lines else bar)
        found = results.read(out, wanted.keys)
    if outcome is not None and outcome.not_loaded and not found.records:
        raise InputError("\n".join(f"{name}: {why}" for name, why in outcome.not_loaded.items()))
    title = f"hashlearn {__version__}, table {wanted.table.name!r}\n"
    text = "\n".join([title, _bench_tables(wanted, found), *_missing(wanted, found)])
    options.show(as_json, _bench_report(wanted, found, out), text)
    if outcome is None:
        raise Interrupted("Interrupted. The same command goes on where this one stopped.")
    click.echo(_ending(outcome, out), err=as_json)
    if outcome.failed or outcome.not_loaded:
        raise click.exceptions.Exit(FAILED)


class _Lines:
    """Progress where standard error is no terminal, as in a log file: a line for each cell that has ended."""

    def __init__(self) -> None:
        self._done = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.done > self._done:
            self._done = progress.done
            click.echo(f"{progress.done}/{progress.total} cells, {progress.stage}", err=True)


def _dataset_names(given: str) -> list[str]:
    """Names with commas between them, or the path of one file, whatever its name."""
    with suppress(OSError, ValueError):
        if Path(given).is_file():
            return [given]
    return _split(given, "--dataset")


def _split(given: str | None, option: str) -> list[str]:
    if given is None:
        return []
    parts = [part.strip() for part in given.split(",")]
    if not all(parts):
        raise ValueError(f"{option} must be names with commas between them, got {given!r}")
    return parts


def _numbers(given: str | None, option: str) -> list[int]:
    try:
        return [int(part) for part in _split(given, option)]
    except ValueError:
        raise ValueError(f"{option} must be whole numbers with commas between them, got {given!r}") from None


def _summaries(plan: Plan, found: Results, dataset: str) -> dict[str, Summary]:
    """The metrics that a table shows, for one data set."""
    from hashlearn.experiments.bench.summary import summarize

    all_of = {name: summarize(found, plan, dataset, name) for name in plan.shown_metrics}
    known = {name: one for name, one in all_of.items() if one.has_values}
    return known or all_of


def _bench_report(plan: Plan, found: Results, out: Path) -> dict[str, Any]:
    """What --json prints: values in per cent, one for each draw, by data set, metric, method and code length."""
    values = {
        dataset: {
            metric: {
                method: {n_bits: {"values": entry.values, "paper": entry.paper} for n_bits, entry in row.items()}
                for method, row in shown.rows.items()
            }
            for metric, shown in _summaries(plan, found, dataset).items()
        }
        for dataset in plan.datasets
    }
    missing = [str(cell) for cell in found.missing]
    protocols = {cell.dataset: record["protocol"] for cell, record in reversed(list(found.records.items()))}
    return {
        "table": plan.table.name,
        "results": str(out),
        "protocols": protocols,
        "values": values,
        "missing": missing,
        "failed": {str(cell): failure.error for cell, failure in found.failures.items()},
        "tracebacks": {str(cell): str(failure.path) for cell, failure in found.failures.items()},
    }


def _bench_tables(plan: Plan, found: Results) -> str:
    parts = []
    for dataset in plan.datasets:
        shown = list(_summaries(plan, found, dataset).values())
        parts += [f"{summary.title}\n\n{summary.text()}\n" for summary in shown]
        if shown[-1].protocol:
            parts.append(f"{shown[-1].protocol}\n")
    return "\n".join(parts)


def _missing(plan: Plan, found: Results) -> list[str]:
    """What was asked for and has no result, and why: a line for each error, and one for cells that were not run."""
    groups: dict[str, list[Cell]] = {}
    for cell in found.missing:
        groups.setdefault(found.reason(cell), []).append(cell)
    lines = []
    for reason, cells in groups.items():
        shown = "; ".join(map(str, cells[:SHOWN_CELLS])) + ("; …" if len(cells) > SHOWN_CELLS else "")
        lines.append(f"{reason[0].upper()}{reason[1:]}. {len(cells)} of {len(plan.cells)} cells: {shown}")
        if cells[0] in found.failures:
            lines.append(f"Traceback: {found.failures[cells[0]].path}")
    return lines


def _ending(outcome: Outcome, out: Path) -> str:
    lines = [f"{name}: {why}" for name, why in outcome.not_loaded.items()] + outcome.notes
    done = len(outcome.finished) - len(outcome.failed)
    lines.append(f"{done} cell(s) run, {outcome.n_stored_before} stored before. Results: {out}")
    return "\n".join(lines)


@click.command("datasets", short_help="What data sets are known, what is present, how to get the rest.")
@options.json_option
def datasets_command(as_json: bool) -> None:
    """List the data sets: what is known, what is present, how to get the rest.

    Files are looked for in the folder that $HASHLEARN_DATA names, else in the user's cache folder. Every .npz there
    with X is a data set by its stem.
    """
    from hashlearn.experiments import datasets

    with refusals():
        found, folder = datasets.known(), datasets.data_folder()
    text = f"Data folder: {folder}{'' if folder.is_dir() else ' (not there yet)'}\n\n"
    text += text_table(DATASETS_HEADER, [_dataset_row(known) for known in found])
    absent = [(known.name, f"{known.how}. Missing: {', '.join(known.missing)}") for known in found if not known.present]
    if absent:
        text += f"\n\nHow to get the rest\n{pairs(absent)}"
    plain = [dataclasses.asdict(known) | {"folder": str(known.folder), "present": known.present} for known in found]
    options.show(as_json, {"folder": str(folder), "datasets": plain}, text)


def _dataset_row(known: Known) -> tuple[str, ...]:
    samples = f"{known.samples:,}" if known.samples is not None else ABSENT
    return (known.name, samples, "yes" if known.present else "no", ", ".join(known.features))
