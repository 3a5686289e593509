"""Experiments, the paper's and yours: ``hashlearn bench`` runs them, ``datasets`` lists their data."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashlearn import __version__
from hashlearn.cli import options
from hashlearn.cli.exits import FAILED, InputError, Interrupted, refusals
from hashlearn.cli.text_tables import pairs
from hashlearn.core.progress import ProgressBar
from hashlearn.pages.formatting import ABSENT, text_table

if TYPE_CHECKING:
    from hashlearn.core.progress import Progress
    from hashlearn.experiments.bench.results import Results
    from hashlearn.experiments.bench.run import Outcome
    from hashlearn.experiments.bench.summary import Summary
    from hashlearn.experiments.bench.tables import Cell
    from hashlearn.experiments.datasets import Known

    Tables = Mapping[str, Mapping[str, Summary]]  # by data set and metric

SHOWN_CELLS = 10
DATASETS_HELP = (
    "Use these data sets, or .npz, .npy or .parquet files; separate names by commas, or repeat the option.  "
    "[default: the table's]"
)
METHODS_HELP = "Compare these methods, such as SDR,AL or my_module:MyHasher (your own).  [default: the table's]"
PROTOCOL_HELP = (
    "Draw samples by this protocol: own (the file's split), 120, 500, 100, knn, digits, all-rows, unseen-120, "
    "unseen-500, unseen-100 or unseen-digits.  [default: own if a file has a split, else the table's]"
)
DRAWS_HELP = (
    "Run each cell this often. The number of a draw is the seed of the method and of the samples that the protocol "
    "draws; own draws none, so all its draws learn from the same rows."
)
METRIC_HELP = (
    "Show this metric: map, map@K, p@N (of the first N) or precision-radius (within 2 bits; precision@2 in a CSV). "
    "Repeat it for more, the most important first.  [default: the table's]"
)
DATASETS_HEADER = ("data set", "samples", "present", "features (default first)")


@click.command("bench", short_help="Run the paper's experiments; resumable, every result stored.")
@click.argument("table")
@click.argument("data", nargs=-1, metavar="[DATA]...")
@click.option("--dataset", "datasets", multiple=True, metavar="NAMES", help=DATASETS_HELP)
@click.option("--methods", metavar="NAMES", help=METHODS_HELP)
@click.option("--bits", metavar="NUMBERS", help="Learn codes of these lengths, such as 8,16.  [default: the table's]")
@click.option("--protocol", metavar="NAME", help=PROTOCOL_HELP)
@click.option(
    "--train-per-class", metavar="N|all", help="Learn from this many samples of each class.  [default: the protocol's]"
)
@click.option("--queries", type=click.IntRange(1), help="Ask at most this many queries in all, drawn at random.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME", help=METRIC_HELP)
@click.option("--draws", type=click.IntRange(1, 1000), default=3, help=DRAWS_HELP)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="results",
    help="Store results in this folder; what it holds already is not run again.",
)
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, help="Run this many processes at a time; one uses all cores."
)
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
    from hashlearn.experiments.bench.choices import Choice
    from hashlearn.experiments.bench.plans import plan
    from hashlearn.experiments.bench.results import read
    from hashlearn.experiments.bench.run import run
    from hashlearn.experiments.bench.summary import summaries
    from hashlearn.experiments.datasets import known

    outcome: Outcome | None = None
    with refusals():
        names = [name for text in (*data, *datasets) for name in _dataset_names(text)]
        train = int(train_per_class) if train_per_class and train_per_class.isdecimal() else train_per_class
        choice = Choice(protocol, train, queries, metrics)
        lengths = _numbers(bits, "--bits")
        cells = plan(table, names, _split(methods, "--methods"), lengths, draws, [one.name for one in known()], choice)
        with ProgressBar(quiet) as bar, suppress(KeyboardInterrupt):
            in_lines = not quiet and not sys.stderr.isatty()
            outcome = run(cells, out, jobs=jobs, progress=_Lines() if in_lines else bar)
        results = read(out, cells.keys)
    if outcome is not None and outcome.not_loaded and not results.records:
        raise InputError("\n".join(f"{name}: {why}" for name, why in outcome.not_loaded.items()))
    tables = {dataset: summaries(results, cells, dataset) for dataset in cells.datasets}
    title = f"hashlearn {__version__}, table {cells.table.name!r}\n"
    text = "\n".join([title, *_texts(tables), *_missing(results, len(cells.cells))])
    options.show(as_json, _report(cells.table.name, results, tables), text)
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


def _dataset_names(text: str) -> list[str]:
    """Names with commas between them, or the path of one file, whatever its name."""
    with suppress(OSError, ValueError):
        if Path(text).is_file():
            return [text]
    return _split(text, "--dataset")


def _split(text: str | None, option: str) -> list[str]:
    """The names in a text with commas between them."""
    names = [name.strip() for name in text.split(",")] if text is not None else []
    if not all(names):
        raise ValueError(f"{option} must be names with commas between them, got {text!r}")
    return names


def _numbers(text: str | None, option: str) -> list[int]:
    """The numbers in a text with commas between them."""
    try:
        return [int(number) for number in _split(text, option)]
    except ValueError:
        raise ValueError(f"{option} must be whole numbers with commas between them, got {text!r}") from None


def _report(table: str, results: Results, tables: Tables) -> dict[str, Any]:
    """What --json prints: values in per cent, one for each draw, by data set, metric, method and code length."""
    values = {
        dataset: {
            metric: {
                method: {n_bits: {"values": entry.values, "paper": entry.paper} for n_bits, entry in row.items()}
                for method, row in summary.rows.items()
            }
            for metric, summary in by_metric.items()
        }
        for dataset, by_metric in tables.items()
    }
    return {
        "table": table,
        "results": str(results.folder),
        "protocols": {cell.dataset: record["protocol"] for cell, record in reversed(list(results.records.items()))},
        "values": values,
        "missing": [str(cell) for cell in results.missing],
        "failed": {str(cell): failure.error for cell, failure in results.failures.items()},
        "tracebacks": {str(cell): str(failure.path) for cell, failure in results.failures.items()},
    }


def _texts(tables: Tables) -> list[str]:
    """Every table, and under those of a data set its protocol."""
    texts = []
    for by_metric in tables.values():
        texts += [f"{summary.title}\n\n{summary.text()}\n" for summary in by_metric.values()]
        texts += [f"{protocol}\n" for protocol in {summary.protocol for summary in by_metric.values()} if protocol]
    return texts


def _missing(results: Results, n_cells: int) -> list[str]:
    """What was asked for and has no result, and why: a line for each error, and one for cells that were not run."""
    groups: dict[str, list[Cell]] = {}
    for cell in results.missing:
        groups.setdefault(results.reason(cell), []).append(cell)
    lines = []
    for reason, cells in groups.items():
        names = "; ".join(map(str, cells[:SHOWN_CELLS])) + ("; …" if len(cells) > SHOWN_CELLS else "")
        lines.append(f"{reason[0].upper()}{reason[1:]}. {len(cells)} of {n_cells} cells: {names}")
        if cells[0] in results.failures:
            lines.append(f"Traceback: {results.failures[cells[0]].path}")
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
        listed, folder = datasets.known(), datasets.data_folder()
    text = f"Data folder: {folder}{'' if folder.is_dir() else ' (not there yet)'}\n\n"
    text += text_table(DATASETS_HEADER, [_dataset_row(one) for one in listed])
    absent = [(one.name, f"{one.how}. Missing: {', '.join(one.missing)}") for one in listed if not one.present]
    if absent:
        text += f"\n\nHow to get the rest\n{pairs(absent)}"
    plain = [dataclasses.asdict(one) | {"folder": str(one.folder), "present": one.present} for one in listed]
    options.show(as_json, {"folder": str(folder), "datasets": plain}, text)


def _dataset_row(known: Known) -> tuple[str, ...]:
    samples = f"{known.samples:,}" if known.samples is not None else ABSENT
    return (known.name, samples, "yes" if known.present else "no", ", ".join(known.features))
