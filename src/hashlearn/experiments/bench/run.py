"""Run the missing cells of a plan: resumable after a kill at any moment, one data set in memory at a time.

A cell that fails is reported, and the others go on. With more than one job, cells run in as many processes; the
results are the same.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from hashlearn.core.progress import Progress, ProgressCallback, tell
from hashlearn.experiments import datasets
from hashlearn.experiments.bench import asked
from hashlearn.experiments.bench.asked import ResultError
from hashlearn.experiments.bench.cell import draw
from hashlearn.experiments.bench.choices import Choice
from hashlearn.experiments.bench.own_methods import is_own, method_named
from hashlearn.experiments.bench.plans import Plan
from hashlearn.experiments.bench.protocols import SHORT_OF
from hashlearn.experiments.bench.results import read
from hashlearn.experiments.bench.splits import Split
from hashlearn.experiments.bench.tables import Cell
from hashlearn.experiments.bench.workers import Finished, Work, in_processes
from hashlearn.experiments.datasets import DataSet


@dataclass
class Outcome:
    """How a run ended."""

    n_stored_before: int
    finished: list[Finished] = field(default_factory=list)
    not_loaded: dict[str, str] = field(default_factory=dict)  # data set → why it could not be used
    notes: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[Finished]:
        """Cells that were tried and gave an error."""
        return [one for one in self.finished if one.error is not None]


def run(
    plan: Plan,
    folder: str | Path,
    *,
    jobs: int = 1,
    load: Callable[..., DataSet] | None = None,
    progress: ProgressCallback | None = None,
) -> Outcome:
    """Run the cells of ``plan`` that ``folder`` does not hold yet.

    Parameters
    ----------
    folder : the results folder, created if necessary
    jobs : number of processes. One uses all cores by threads
    load : replaces `hashlearn.experiments.datasets.load`
    progress : called with a `Progress` at every step; ``done`` of ``total`` cells have ended

    Raises
    ------
    ResultError
        for a file in the folder that is no result of this version, before anything is run.
    KeyboardInterrupt
        after Ctrl-C; running cells are abandoned, finished ones are stored.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be a positive integer, got {jobs!r}")
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultError(f"{folder}: cannot be made a results folder: {error.strerror or error}") from None
    stored = dict(read(folder, plan.cells).records)
    _require_same_options(plan, stored)
    again = [cell for cell, record in stored.items() if not _is_current(plan, cell, record)]
    for cell in again:
        if _has_changed(cell, stored.pop(cell)):
            (folder / cell.path).unlink(missing_ok=True)  # the result of other code
    todo = [cell for cell in plan.cells if cell not in stored]
    outcome = Outcome(n_stored_before=len(stored))
    if again:
        outcome.notes.append(f"{len(again)} stored cell(s) had other code or lacked a metric and were run again")
    with _noticing_interrupts() as check:

        def say(what: str) -> None:
            check()
            left_out = sum(cell.dataset in outcome.not_loaded for cell in todo)
            tell(progress, what, len(outcome.finished) + left_out, len(todo))

        for dataset, source in plan.datasets.items():
            cells = [cell for cell in todo if cell.dataset == dataset]
            if cells:
                features = plan.table.features.get(dataset)
                choice = _with_stored_metrics(plan, dataset, folder)
                work = Work(folder, load or datasets.load, source, features, max(plan.bits), choice)
                _run_dataset(plan, cells, work, jobs, outcome, say, stored)
            else:
                asked.record(folder, plan, dataset)
    return outcome


def _run_dataset(
    plan: Plan,
    cells: list[Cell],
    work: Work,
    jobs: int,
    outcome: Outcome,
    say: Callable[[str], None],
    stored: Mapping[Cell, Mapping[str, Any]],
) -> None:
    dataset = cells[0].dataset

    def loading(at: Progress) -> None:
        say(f"{dataset}: {at.stage} {at.done}/{at.total}")

    say(f"{dataset}: loading")
    try:
        data = work.load(work.source, features=work.features, progress=loading)
        _check_same_queries(stored, dataset, draw(plan.table, data, 0, plan.choice))
        asked.record(work.folder, plan, dataset)
    except Exception as error:  # whatever is wrong with this data set, the next one may work
        outcome.not_loaded[dataset] = str(error)
        return
    if jobs == 1 or len(cells) == 1:
        ending = _here(cells, data, work, say)
    else:
        ending = in_processes(cells, min(jobs, len(cells)), work, lambda cell: say(str(cell)))
    del data  # the workers have their own
    for ended in ending:
        outcome.finished.append(ended)
        say(str(ended.cell))


def _require_same_options(plan: Plan, stored: Mapping[Cell, Mapping[str, Any]]) -> None:
    """Refuse to show stored cells beside options that they were not made with."""
    now = plan.choice.sizes
    for cell, record in stored.items():
        drawn = record["protocol"]
        before = drawn.get("asked")
        has_usual = before is None and now == {"protocol": drawn.get("name")}  # what the table took by itself
        if before != now and not has_usual:
            raise ResultError(
                f"{cell.dataset}: its stored results were made with {_words(before)}, now asked for {_words(now)}; "
                "name another results folder"
            )


def _words(sizes: Mapping[str, Any] | None) -> str:
    if not sizes:
        return "the table's own protocol"
    return ", ".join(f"{name.replace('_', ' ')} {value!r}" for name, value in sizes.items() if value)


def _is_current(plan: Plan, cell: Cell, record: Mapping[str, Any]) -> bool:
    """Whether a stored record is what running the cell now would store."""
    return set(plan.choice.extra_metrics) <= set(record["metrics"]) and not _has_changed(cell, record)


def _has_changed(cell: Cell, record: Mapping[str, Any]) -> bool:
    """Whether the record was made by another version of somebody's class."""
    if not is_own(cell.method):
        return False
    return bool(record["configuration"].get("source") != method_named(cell.method).configuration["source"])


def _with_stored_metrics(plan: Plan, dataset: str, folder: Path) -> Choice:
    """The plan's options, and metrics asked for before: cells that run again keep these."""
    known = asked.read_asked(folder, plan.table.name, dataset)
    return replace(plan.choice, metrics=(*plan.choice.metrics, *(known.metrics if known else ())))


def _check_same_queries(stored: Mapping[Cell, Mapping[str, Any]], dataset: str, drawn: Split) -> None:
    """Refuse to add to a table whose stored cells have another protocol or other queries."""
    for part, words in (("name", "protocol"), ("queries", "queries")):
        now = drawn.description.get(part)
        for cell, record in stored.items():
            before = record["protocol"].get(part, now)
            if cell.dataset == dataset and before != now:
                hint = f", or give --protocol {SHORT_OF[before]}" if part == "name" and before in SHORT_OF else ""
                raise ResultError(
                    f"its stored results have {words} {before!r}, now they are {now!r}; "
                    f"name another results folder{hint}"
                )


def _here(cells: list[Cell], data: DataSet, work: Work, say: Callable[[str], None]) -> Iterator[Finished]:
    for cell in cells:
        yield work.try_cell(cell, data, partial(_say_of, say, cell))


def _say_of(say: Callable[[str], None], cell: Cell, what: str) -> None:
    say(f"{cell}: {what}")


@contextmanager
def _noticing_interrupts() -> Iterator[Callable[[], None]]:
    """A function that raises KeyboardInterrupt after Ctrl-C was pressed.

    An interrupted solver returns its best solution so far, and learning goes on. Such a cell must not be stored.
    """
    pressed = threading.Event()

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield check  # Ctrl-C is ignored, or its handler cannot be set here
        return

    def press(number: int, frame: FrameType | None) -> None:
        pressed.set()
        before(number, frame)

    signal.signal(signal.SIGINT, press)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
