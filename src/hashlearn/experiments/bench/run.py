"""Run the missing cells of a plan: resumable after a kill at any moment, one data set in memory at a time.

A cell that fails is reported, and the others go on. With more than one job, cells run in as many processes; the
results are the same.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType

from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.experiments import datasets
from hashlearn.experiments.bench.cell import draw
from hashlearn.experiments.bench.plans import Plan
from hashlearn.experiments.bench.results import ResultError, read, read_requests, store_request
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
    """Run the cells of ``plan`` of which ``folder`` has no result.

    Parameters
    ----------
    folder : the results folder, created if necessary
    jobs : number of processes. One uses all cores by threads
    load : replaces `hashlearn.experiments.datasets.load`
    progress : called with a `Progress` at every step; ``done`` of ``total`` cells have ended

    Raises
    ------
    ResultError
        for a file in the folder that is not what its name says, before anything is run.
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
    read_requests(folder)
    missing = read(folder, plan.keys).missing
    outcome = Outcome(n_stored_before=len(plan.cells) - len(missing))
    with _noticing_interrupts() as check:

        def say(what: str) -> None:
            check()
            left_out = sum(cell.dataset in outcome.not_loaded for cell in missing)
            tell(progress, what, len(outcome.finished) + left_out, len(missing))

        for dataset in plan.datasets:
            cells = [cell for cell in missing if cell.dataset == dataset]
            _run_dataset(cells, Work(folder, plan, dataset, load or datasets.load), jobs, outcome, say)
    return outcome


def _run_dataset(cells: list[Cell], work: Work, jobs: int, outcome: Outcome, say: Callable[[str], None]) -> None:
    dataset, plan, data = work.dataset, work.plan, None
    if cells:
        say(f"{dataset}: loading")
        try:
            data = work.data(lambda at: say(f"{dataset}: {at.stage} {at.done}/{at.total}"))
            draw(plan.table, data, 0, plan.choice)
        except Exception as error:  # whatever is wrong with this data set, the next one may work
            outcome.not_loaded[dataset] = str(error)
            return
    if store_request(work.folder, plan, dataset):
        outcome.notes.append(f"{dataset}: asked before with other options or rows; `report` shows what was asked last")
    if data is None or (jobs > 1 and len(cells) > 1):
        del data  # the workers have their own
        endings = in_processes(cells, min(jobs, len(cells)), work, lambda cell: say(str(cell)))
    else:
        endings = (work.try_cell(cell, data, partial(_say_of, say, cell)) for cell in cells)
    for ended in endings:
        outcome.finished.append(ended)
        say(str(ended.cell))


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
