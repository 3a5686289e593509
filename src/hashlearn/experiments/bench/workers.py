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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hashlearn.core.threads import n_threads
from hashlearn.experiments.bench.cell import Stage, run_cell
from hashlearn.experiments.bench.choices import Choice
from hashlearn.experiments.bench.results import as_text, write_cell, write_error
from hashlearn.experiments.bench.tables import Cell
from hashlearn.experiments.datasets import DataSet

THREAD_VARIABLES = (
    "HASHLEARN_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@dataclass(frozen=True)
class Finished:
    """How one cell ended."""

    cell: Cell
    error: str | None = None  # in one line; the traceback is stored


@dataclass(frozen=True)
class Work:
    """What a worker needs to know. It is pickled."""

    folder: Path
    load: Callable[..., DataSet]
    source: str
    features: str | None
    gallery_bits: int  # code length for which draw 0 gets a gallery
    choice: Choice

    def try_cell(self, cell: Cell, data: DataSet, stage: Stage) -> Finished:
        """Run and store one cell. Its errors are stored and returned; only Ctrl-C and failed writes are raised."""
        try:
            with_gallery = cell.draw == 0 and cell.n_bits == self.gallery_bits
            record = run_cell(cell, data, choice=self.choice, with_gallery=with_gallery, stage=stage)
            record["cell"]["source"] = self.source
            text = as_text(record)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            write_error(self.folder, cell, text, traceback.format_exc())
            return Finished(cell, text)
        stage("storing")
        write_cell(self.folder, cell, text)
        return Finished(cell)


def in_processes(
    cells: Sequence[Cell], jobs: int, work: Work, begun: Callable[[Cell], Any] = lambda cell: None
) -> Iterator[Finished]:
    """Run cells in ``jobs`` processes and yield them as they end. ``begun`` is called with each cell that starts.

    If a process dies, the pool ends, and nobody knows which of its running cells was to blame. So these run again, one
    at a time, before the others go on in a new pool.
    """
    waiting, suspects = deque(cells), deque[Cell]()
    others = set(multiprocessing.active_children())
    try:
        while waiting or suspects:
            queue, width = (suspects, 1) if suspects else (waiting, jobs)
            with _pool(width, work, max(1, n_threads() // jobs)) as pool:
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
            if len(dead) == 1:
                error = "the worker process died, perhaps out of memory"
                write_error(work.folder, dead[0], error, "")
                yield Finished(dead[0], error)
            else:
                suspects.extend(dead)
    finally:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()


@contextmanager
def _pool(width: int, work: Work, threads: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with _threads_of_children(threads):
        pool = ProcessPoolExecutor(width, context, initializer=_begin, initargs=(work,))
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(work: Work) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _begun.append((work, work.load(work.source, features=work.features)))


def _try_cell(cell: Cell) -> Finished:
    work, data = _begun[0]
    return work.try_cell(cell, data, lambda what: None)


_begun: list[tuple[Work, DataSet]] = []  # of a worker: what it works on


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _threads_of_children(count: int) -> Iterator[None]:
    """Processes started inside use ``count`` threads: libraries read these variables when they are imported."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(count)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
