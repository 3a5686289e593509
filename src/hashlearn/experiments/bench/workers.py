"""One cell, run in this process or in a worker. Workers end with their parent, and a worker that dies costs one cell.

Each worker loads the data set once, gets its share of the cores, and ignores Ctrl-C, which its parent handles. The
process that runs a cell stores it atomically, so no kill loses a finished cell or leaves half of one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from hashlearn.core.progress import ProgressCallback
from hashlearn.core.threads import n_threads
from hashlearn.experiments.bench.cell import Stage, run_cell
from hashlearn.experiments.bench.plans import Plan
from hashlearn.experiments.bench.results import store, store_error
from hashlearn.experiments.bench.tables import Cell
from hashlearn.experiments.datasets import DataError, DataSet

DIED = "the worker process died, perhaps out of memory"
Begun = Callable[[Cell], Any]


@dataclass(frozen=True)
class Finished:
    """How one cell ended."""

    cell: Cell
    error: str | None = None  # in one line; the traceback is stored


@dataclass(frozen=True)
class Work:
    """The cells of one data set. It is pickled for workers, with the keys that the parent process computed."""

    folder: Path
    plan: Plan
    dataset: str
    load: Callable[..., DataSet]

    def data(self, progress: ProgressCallback | None = None) -> DataSet:
        """The data set. A file that is not the one of the keys is refused."""
        source = self.plan.datasets[self.dataset]
        data = self.load(source.name, features=self.plan.table.features.get(self.dataset), progress=progress)
        if source.sha256 != "" and [file.sha256 for file in data.provenance.files] != [source.sha256]:
            raise DataError(f"{source.name}: has changed since the run began; run the same command again")
        return data

    def try_cell(self, cell: Cell, data: DataSet, stage: Stage) -> Finished:
        """Run and store one cell. Its errors are stored and returned; only Ctrl-C and failed writes are raised."""
        key = self.plan.keys[cell]
        try:
            if self.plan.key(cell) != key:
                raise ValueError("its code has changed since the run began; run the same command again")
            record = run_cell(cell, data, choice=self.plan.choice, stage=stage)
        except Exception as error:
            return self.failed(cell, f"{type(error).__name__}: {error}", traceback.format_exc())
        stage("storing")
        store(self.folder, cell, key, record)
        return Finished(cell)

    def failed(self, cell: Cell, error: str, trace: str = "") -> Finished:
        """Store the error of a cell."""
        store_error(self.folder, cell, self.plan.keys[cell], error, trace)
        return Finished(cell, error)


def in_processes(cells: Sequence[Cell], jobs: int, work: Work, begun: Begun) -> Iterator[Finished]:
    """Run cells in ``jobs`` processes and yield them as they end. ``begun`` is called with each cell that starts.

    If a process dies, the pool ends, and nobody knows which of its running cells was to blame. So these run again, one
    at a time, before the others go on in a new pool.
    """
    waiting, suspects = deque(cells), deque[Cell]()
    others = set(multiprocessing.active_children())
    try:
        while waiting or suspects:
            queue, width = (suspects, 1) if suspects else (waiting, jobs)
            arguments = (work, max(1, n_threads() // jobs))
            pool = ProcessPoolExecutor(width, multiprocessing.get_context("spawn"), _begin, arguments)
            try:
                dead = yield from _until_one_dies(pool, queue, width, begun)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
            if len(dead) == 1:
                yield work.failed(dead[0], DIED)
            else:
                suspects.extend(dead)
    finally:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


def _until_one_dies(
    pool: ProcessPoolExecutor, queue: deque[Cell], width: int, begun: Begun
) -> Generator[Finished, None, list[Cell]]:
    """Run the queue until it is empty or a process dies; returns the cells that ran when it died."""
    running: dict[Future[Finished], Cell] = {}
    dead: list[Cell] = []
    while running or (queue and not dead):
        while queue and len(running) < width and not dead:
            cell = queue.popleft()
            begun(cell)
            try:
                running[pool.submit(_try_cell, cell)] = cell
            except BrokenProcessPool:
                dead.append(cell)
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            cell = running.pop(future)
            try:
                yield future.result()
            except BrokenProcessPool:
                dead.append(cell)
    return dead


_begun: list[tuple[Work, DataSet]] = []  # of a worker: what it works on


def _begin(work: Work, threads: int) -> None:
    """What a worker does first."""
    os.environ["HASHLEARN_NUM_THREADS"] = str(threads)
    threadpool_limits(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _begun.append((work, work.data()))


def _try_cell(cell: Cell) -> Finished:
    work, data = _begun[0]
    return work.try_cell(cell, data, lambda what: None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
