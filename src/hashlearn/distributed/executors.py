"""Functions of every block of a table: on the threads of this process, or on Dask workers. Both give the same numbers.

Results come in the order of blocks, or merged in a tree that only the number of blocks sets. What a fit reads again and
again, a block's rows of the target's factor, stays with the worker that made it, as the future of a task. When a worker
is lost, Dask runs the task again from the rows elsewhere; nothing else of a fit is on the workers between passes.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import whole_number
from hashlearn.core.packages import require
from hashlearn.core.threads import map_threads, n_threads, on_this_thread, one_blas_thread
from hashlearn.distributed.moments import tree
from hashlearn.distributed.row_blocks import Table, checked_rows, identity

LEAST_MEMORY = 6e8  # bytes that a worker needs for itself
TOO_LITTLE = "{}; a worker needs at least 600 MB for itself, and its blocks of rows on top: give it more memory"
MESSAGES_LOGGED = 10
# Between passes a worker keeps up to this share of its memory limit, less what it needs for itself, in memory.
MEMORY_SHARE = 0.6


Task = Callable[..., Any]


@contextmanager
def connected(
    client: Any = None, address: str | None = None, n_workers: int | None = None, memory_limit: Any = "auto"
) -> Iterator[Any]:
    """A Dask client, or None for work in this process; what was opened here is closed at the end.

    Parameters
    ----------
    client : used as it is, and left open
    address : of a scheduler, ``tcp://host:8786``
    n_workers, memory_limit : of a `LocalCluster` where neither is given: a process for each core by default, and
        memory for each of them, such as ``"3GB"``. ``n_workers=0`` alone means this process
    """
    if client is not None and address is not None:
        raise ValueError("give client or address, not both")
    if client is not None:
        _require_memory(client)
        yield client
    elif address is not None:
        with _short_logs(), require("distributed", "dask", "hashlearn.distributed").Client(address) as opened:
            _require_memory(opened)
            yield opened
    elif n_workers == 0:
        yield None
    else:
        distributed = require("distributed", "dask", "hashlearn.distributed")
        workers = n_threads() if n_workers is None else whole_number(n_workers, "n_workers", least=1)
        limit = _memory_bytes(memory_limit)
        if limit and limit < LEAST_MEMORY:
            raise ValueError(TOO_LITTLE.format(f"memory_limit={memory_limit!r} is {limit / 1e6:,.0f} MB"))
        settings = {"threads_per_worker": 1, "memory_limit": memory_limit, "dashboard_address": ":0"}
        with (
            _short_logs(),
            distributed.LocalCluster(n_workers=workers, **settings) as cluster,
            distributed.Client(cluster) as opened,
        ):
            yield opened


@contextmanager
def _short_logs() -> Iterator[None]:
    """Keep few messages. Dask keeps the last 1,000 of every connection, and those of a fit hold codes of a block."""
    config = require("dask.config", "dask", "hashlearn.distributed")
    with config.set({"distributed.admin.low-level-log-length": MESSAGES_LOGGED}):
        yield


def workers_of(client: Any) -> dict[str, Any]:
    """What the scheduler knows of every worker, by its address."""
    return client.scheduler_info(n_workers=-1)["workers"]


def _require_memory(client: Any) -> None:
    """Refuse workers that Dask would stop and start again for ever."""
    for address, worker in workers_of(client).items():
        limit = worker["memory_limit"]
        if limit and limit < LEAST_MEMORY:
            raise ValueError(TOO_LITTLE.format(f"the worker {address} has a memory limit of {limit / 1e6:,.0f} MB"))


def _memory_bytes(memory_limit: Any) -> int | None:
    """The limit in bytes, None or 0 for no limit, as a `LocalCluster` takes it."""
    parse = require("distributed.worker_memory", "dask", "hashlearn.distributed").parse_memory_limit
    try:
        return parse(memory_limit, 1, logger=logging.getLogger(__name__))
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"memory_limit must be bytes, such as 2e9 or '2GB', got {memory_limit!r}: {error}") from None


class Executor:
    """Functions of every block, on the threads of this process.

    The ``sources`` of a function are `rows`, which are read when it runs, or `factors`, which `keep` made of them.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self._factors: list[Any] = []

    @property
    def rows(self) -> Iterable[Any]:
        """The features of every block."""
        return self.table.blocks

    @property
    def factors(self) -> Sequence[Any]:
        """What `keep` made of every block."""
        return self._factors

    def keep(self, function: Task, n_columns: int, *common: Any) -> None:
        """Make ``function(rows, *common)`` of every block, float32 of ``n_columns`` columns, and keep it."""
        self._factors = self.map(function, self.rows, *common)

    def close(self) -> None:
        """Forget the factors."""
        self._factors = []

    def map(self, function: Task, sources: Iterable[Any], *common: Any, each: Sequence[Any] | None = None) -> Any:
        """A list of ``function(array, *each[block], *common)`` of every block."""
        jobs = zip(sources, each or [()] * len(self.table.blocks), strict=True)
        with one_blas_thread():
            return list(map_threads(lambda job: on_array(function, *job, common), jobs))

    def reduce(self, function: Task, merge: Task, sources: Iterable[Any], *common: Any, each: Any = None) -> Any:
        """The same, merged by ``merge`` of two neighbors."""
        return tree(partial(reduce, merge), self.map(function, sources, *common, each=each))


class OnDask(Executor):
    """Functions of every block, on the workers of a Dask client."""

    def __init__(self, table: Table, client: Any) -> None:
        super().__init__(table)
        self._client = client
        self._alive: set[str] = set()
        self._worker_of = [""] * len(table.blocks)
        self._recipe: tuple[Any, ...] = ()

    @property
    def rows(self) -> Iterable[Any]:
        """Blocks, or futures of the pieces of a Dask collection: one by one, so that none is held for long."""
        self._place()
        return map(self._source, range(len(self.table.blocks)))

    @property
    def factors(self) -> Sequence[Any]:
        """A future for every block."""
        self._place()
        return self._factors

    def keep(self, function: Task, n_columns: int, *common: Any) -> None:
        """Make ``function(rows, *common)`` of every block, float32 of ``n_columns`` columns; keep it on its worker."""
        self._place()
        limits = [worker["memory_limit"] or float("inf") for worker in workers_of(self._client).values()]
        memory = MEMORY_SHARE * min(limits, default=0.0) - LEAST_MEMORY
        self._recipe = (function, share(self._client, common), memory / (4 * n_columns * max(self.table.lengths)))
        self._factors = [self._make(number) for number in range(len(self.table.blocks))]

    def map(self, function: Task, sources: Iterable[Any], *common: Any, each: Sequence[Any] | None = None) -> Any:
        """A list of ``function(array, *each[block], *common)`` of every block."""
        return self._client.gather(self._futures(function, sources, common, each))

    def reduce(self, function: Task, merge: Task, sources: Iterable[Any], *common: Any, each: Any = None) -> Any:
        """The same, merged by ``merge`` of two neighbors on a worker."""
        combine = partial(self._client.submit, merge_parts, merge, pure=False)
        return tree(lambda parts: combine(*parts), self._futures(function, sources, common, each)).result()

    def _futures(self, function: Task, sources: Iterable[Any], common: Any, each: Any) -> list[Any]:
        # Passes over factors are many and short, and need only a few vectors: those go with every task.
        common = common if sources is self._factors else share(self._client, common)
        jobs = zip(sources, each or [()] * len(self.table.blocks), strict=True)
        return [self._submit(number, on_array, function, *job, common) for number, job in enumerate(jobs)]

    def _submit(self, number: int, task: Task, *arguments: Any) -> Any:
        place = [self._worker_of[number]]
        return self._client.submit(task, *arguments, workers=place, allow_other_workers=True, pure=False)

    def _source(self, number: int) -> Any:
        block = self.table.blocks[number]
        if block.delayed is None:
            return block
        piece = self._client.compute(block.delayed)
        return self._client.submit(checked_rows, piece, block.name, block.n_features, pure=False)

    def _make(self, number: int) -> Any:
        """A block's factor, in memory as far as a worker's share of the blocks fits there, else in a file."""
        function, common, blocks_in_memory = self._recipe
        task = on_array if number // len(self._alive) + 1 <= blocks_in_memory else in_file
        return self._submit(number, task, function, self._source(number), (), common)

    def _place(self) -> None:
        """Give every worker its share of the blocks, again when workers came or went."""
        alive = set(workers_of(self._client))
        if not alive:
            self._client.wait_for_workers(1)
            alive = set(workers_of(self._client))
        if alive == self._alive:
            return
        self._alive = alive
        if self._factors:  # Dask has made those of a lost worker again on some other
            where = self._client.who_has(self._factors)
            self._worker_of = [next(iter(where.get(future.key, ())), "") for future in self._factors]
        most, load = -(-len(self._worker_of) // len(alive)), dict.fromkeys(alive, 0)
        for number, worker in enumerate(self._worker_of):
            if load.get(worker, most) >= most:
                worker = self._worker_of[number] = min(load, key=load.__getitem__)
                if self._factors:
                    self._factors[number] = self._make(number)
            load[worker] += 1


class FileArray:
    """An array in a file, which is removed with this object. Another process that gets the object gets a file too."""

    def __init__(self, array: NDArray[Any], folder: str | None = None) -> None:
        handle, path = tempfile.mkstemp(".npy", "hashlearn-", folder)
        with open(handle, "wb") as file:
            np.save(file, array)
        self._path = Path(path)
        weakref.finalize(self, self._path.unlink, missing_ok=True)

    def load(self) -> NDArray[Any]:
        """The array, in memory."""
        return np.load(self._path)

    def __reduce__(self) -> tuple[Any, ...]:
        return FileArray, (self.load(),)


@contextmanager
def one_core() -> Iterator[None]:
    """One core for this task."""
    with on_this_thread(), one_blas_thread():
        yield
    if "pyarrow" in sys.modules:  # whose allocator keeps what it freed, several times the size of a block
        sys.modules["pyarrow"].default_memory_pool().release_unused()


def on_array(function: Callable[..., Any], source: Any, own: Sequence[Any], common: Sequence[Any]) -> Any:
    """``function(array, *own, *common)`` of an array, or of a block or `FileArray` that is read now."""
    with one_core():
        return function(source.load() if hasattr(source, "load") else source, *own, *common)


def in_file(*arguments: Any) -> FileArray:
    """The result of `on_array` in a file of this worker."""
    return FileArray(on_array(*arguments), require("distributed", "dask", __name__).get_worker().local_directory)


def merge_parts(merge: Callable[[Any, Any], Any], *parts: Any) -> Any:
    """Parts merged from the left."""
    with one_core():
        return reduce(merge, parts)


def share(client: Any, value: Any) -> Any:
    """A future of the value, so that it is sent once and not with every task.

    A task and not scattered data: the scheduler can make it again when the worker that has it is lost.
    """
    return client.submit(identity, value, pure=False)
