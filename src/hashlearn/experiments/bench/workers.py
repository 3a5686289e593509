"""One cell, run in this process or in a worker. Workers end with their parent, and a worker that dies costs one cell.

Each worker loads the data set once, gets its share of the cores, and ignores Ctrl-C, which its parent handles. The
process that runs a cell stores it atomically, so no kill loses a finished cell or leaves half of one.

joblib and `concurrent.futures` cannot replace this: there, one killed worker breaks the whole pool. All running cells
fail, and nobody learns which cell was to blame.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
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
    seconds: float
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
        started = time.perf_counter()
        try:
            with_gallery = cell.draw == 0 and cell.n_bits == self.gallery_bits
            record = run_cell(cell, data, choice=self.choice, with_gallery=with_gallery, stage=stage)
            record["cell"]["source"] = self.source
            text = as_text(record)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            write_error(self.folder, cell, text, traceback.format_exc())
            return Finished(cell, time.perf_counter() - started, text)
        stage("storing")
        write_cell(self.folder, cell, text)
        return Finished(cell, time.perf_counter() - started)


def in_processes(
    cells: Sequence[Cell], jobs: int, work: Work, begun: Callable[[Cell], Any] = lambda cell: None
) -> Iterator[Finished]:
    """Run cells in ``jobs`` processes and yield them as they end. ``begun`` is called with each cell that starts."""
    waiting = deque(cells)
    idle: list[_Worker] = []
    busy: dict[Connection, _Worker] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else _Worker(work, max(1, n_threads() // jobs))
                busy[worker.connection] = worker
                begun(waiting[0])
                worker.give(waiting.popleft())
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                ended = busy[connection].take()
                worker = busy.pop(connection)
                if worker.died:
                    write_error(work.folder, ended.cell, str(ended.error), "")
                    worker.end()
                else:
                    idle.append(worker)
                yield ended
    finally:
        for worker in [*idle, *busy.values()]:
            worker.end()


class _Worker:
    """A process that runs one cell after another."""

    def __init__(self, work: Work, threads: int) -> None:
        self.died = False
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with _threads_of_children(threads):
            self.process.start()
        theirs.close()

    def give(self, cell: Cell) -> None:
        self.cell, self.started = cell, time.perf_counter()
        with suppress(BrokenPipeError):  # it died between two cells: `take` notices
            self.connection.send(cell)

    def take(self) -> Finished:
        """Wait for the cell. If the process died, the cell has failed."""
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.died = True
            self.process.join()
            code = self.process.exitcode or 0
            why = f"killed by signal {-code}, perhaps out of memory" if code < 0 else f"exit code {code}"
            return Finished(self.cell, time.perf_counter() - self.started, f"the worker process died ({why})")
        if isinstance(message, BaseException):
            raise message
        assert isinstance(message, Finished)
        return message

    def end(self) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def _serve(connection: Connection, work: Work) -> None:
    """The main function of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    data = work.load(work.source, features=work.features)
    while True:
        cell = connection.recv()
        try:
            connection.send(work.try_cell(cell, data, lambda what: None))
        except OSError as error:  # the result could not be stored: no other could be either
            connection.send(error)


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
