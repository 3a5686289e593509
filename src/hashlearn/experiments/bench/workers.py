"""One cell tried, here or in a worker process. Workers end with their parent, and a worker that dies costs one cell.

Each worker loads the data set once, has its share of the cores, and leaves Ctrl-C to its parent. Cells are stored by
whoever ran them, atomically, so nothing is lost or left half-written when any of the processes is killed.
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
from typing import TYPE_CHECKING, Any

from hashlearn.core.threads import n_threads
from hashlearn.experiments.bench.cell import Stage, run_cell
from hashlearn.experiments.bench.results import as_text, write_cell, write_error
from hashlearn.experiments.bench.tables import Cell

if TYPE_CHECKING:
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
    """What a worker must know; it is pickled."""

    folder: Path
    load: Callable[..., DataSet]
    source: str
    features: str | None
    gallery_bits: int  # code length for which draw 0 gets a gallery

    def try_cell(self, cell: Cell, data: DataSet, stage: Stage) -> Finished:
        """Run and store one cell. Whatever goes wrong with it is stored and told; only Ctrl-C and a full disk pass."""
        started = time.perf_counter()
        try:
            with_gallery = cell.draw == 0 and cell.n_bits == self.gallery_bits
            record = run_cell(cell, data, with_gallery=with_gallery, stage=stage)
            record["cell"]["source"] = self.source
            text = as_text(record)
        except Exception as error:
            write_error(self.folder, cell, traceback.format_exc())
            return Finished(cell, time.perf_counter() - started, f"{type(error).__name__}: {error}")
        stage("storing")
        write_cell(self.folder, cell, text)
        return Finished(cell, time.perf_counter() - started)


def in_processes(
    cells: Sequence[Cell], jobs: int, work: Work, begun: Callable[[Cell], Any] = lambda cell: None
) -> Iterator[Finished]:
    """Cells as they end, ``jobs`` at a time, each in one of as many processes; ``begun`` hears of those that begin."""
    waiting = deque(cells)
    crew: dict[Connection, _Worker] = {}
    threads = max(1, n_threads() // jobs)
    try:
        while waiting or crew:
            while waiting and len(crew) < jobs:
                worker = _Worker(work, threads)
                crew[worker.connection] = worker
                begun(waiting[0])
                worker.give(waiting.popleft())
            for connection in wait(list(crew)):
                assert isinstance(connection, Connection)
                worker = crew[connection]
                ended = worker.take()
                if ended.error is not None and not worker.process.is_alive():
                    write_error(work.folder, ended.cell, ended.error)
                    crew.pop(connection).end()
                yield ended
                if connection in crew and waiting:
                    begun(waiting[0])
                    worker.give(waiting.popleft())
                elif connection in crew:
                    crew.pop(connection).end()
    finally:
        for worker in crew.values():
            worker.end()


class _Worker:
    """A process that runs one cell after another."""

    def __init__(self, work: Work, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with _threads_of_children(threads):
            self.process.start()
        theirs.close()

    def give(self, cell: Cell) -> None:
        self.cell, self.started = cell, time.perf_counter()
        with suppress(BrokenPipeError):  # it died between two cells: `take` finds out
            self.connection.send(cell)

    def take(self) -> Finished:
        """Wait for its cell; a process that died makes the cell a failed one."""
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError):
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
    """The life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    data = work.load(work.source, features=work.features)
    while True:
        cell = connection.recv()
        try:
            connection.send(work.try_cell(cell, data, lambda what: None))
        except OSError as error:  # the result could not be stored: the others would not be either
            connection.send(error)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@contextmanager
def _threads_of_children(count: int) -> Iterator[None]:
    """Processes started inside have so many threads: libraries read these variables when they are imported."""
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
