"""Passes over the blocks of a table: in this process, or on Dask workers. Both give the same numbers.

A pass is a function of every block. Results come back in the order of blocks, or merged in a tree that only the number
of blocks sets. On Dask a block stays with one worker while that lives, because the worker caches parts of it
(`block_cache`); when a worker is lost, its blocks are made again elsewhere by the same functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.distributed import block_cache
from hashlearn.distributed.block_cache import MISSING, BlockState, FactorSpec, forget
from hashlearn.distributed.blocks import LazyBlock, Table
from hashlearn.distributed.client import LEAST_MEMORY, workers_of
from hashlearn.distributed.moments import tree
from hashlearn.inference.passes import Outcome

# Between passes a worker keeps up to this share of its memory limit, less what it needs for itself and for one block.
MEMORY_SHARE = 0.6


class Executor(ABC):
    """Passes over the blocks of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._spec: FactorSpec | None = None
        self._shared_spec: Any = None

    def map_rows(self, function: Callable[..., Any], *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """``function(rows, *each[block], *common)`` for every block."""
        return self._gather(self._on_rows(function, common, each))

    def reduce_rows(
        self, function: Callable[..., Any], merge: Callable[..., Any], *common: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """The same, merged by ``merge`` of two neighbors."""
        return self._reduce(merge, self._on_rows(function, common, each))

    def keep(self, spec: FactorSpec, function: Callable[[BlockState], Any]) -> list[Any]:
        """Make and cache every block's factor; ``function`` of each."""
        self._spec, self._shared_spec = spec, self._share(spec)
        return self._gather([self._restore(b, function, None, -1, ()) for b in self._numbers])

    def map_states(
        self,
        function: Callable[..., Any],
        version: int,
        outcomes: Sequence[Outcome] | None,
        codes: Sequence[NDArray[np.uint8]] | None,
        *common: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """``function(state, *each[block], *common)`` after every block has taken ``outcomes`` of the last pass.

        ``codes`` are those of ``version``, for workers that lost theirs.
        """
        ends = [Outcome.KEEP] * len(self._numbers) if outcomes is None else outcomes
        arguments = [(*(() if each is None else each[b]), *common) for b in self._numbers]
        results = self._gather(
            [
                self._submit(b, block_cache.on_state, function, self._shared_spec, b, version, ends[b], arguments[b])
                for b in self._numbers
            ]
        )
        lost = [b for b in self._numbers if isinstance(results[b], str) and results[b] == MISSING]
        again = self._gather(
            [self._restore(b, function, None if codes is None else codes[b], version, arguments[b]) for b in lost]
        )
        for b, result in zip(lost, again, strict=True):
            results[b] = result
        return results

    def memory_each(self) -> float:
        """Bytes that one process may keep in memory between passes."""
        return float("inf")

    @abstractmethod
    def close(self) -> None:
        """Forget what was cached."""

    @property
    def _numbers(self) -> range:
        return range(len(self.table.blocks))

    def _on_rows(self, function: Callable[..., Any], common: Sequence[Any], each: Sequence[Any] | None) -> list[Any]:
        shared = self._share(common) if common else ()
        own = [() if each is None else each[b] for b in self._numbers]
        return [self._submit(b, block_cache.on_rows, function, *self._rows(b), own[b], shared) for b in self._numbers]

    def _restore(self, number: int, function: Callable[..., Any], *state: Any) -> Any:
        return self._submit(
            number, block_cache.on_restored, function, *self._rows(number), self._shared_spec, number, *state
        )

    def _rows(self, number: int) -> tuple[Any, str, int]:
        """A block, its name and its width, as tasks take them."""
        return self._source(number), self.table.blocks[number].name, self.table.n_features

    def _source(self, number: int) -> Any:
        return self.table.blocks[number]

    def _share(self, value: Any) -> Any:
        """What a task is given in place of a value that many tasks need."""
        return value

    @abstractmethod
    def _submit(self, number: int, task: Callable[..., Any], *arguments: Any) -> Any:
        """A task of one block that `_gather` runs or waits for."""

    @abstractmethod
    def _gather(self, submitted: list[Any]) -> list[Any]:
        """The results of all"""

    @abstractmethod
    def _reduce(self, merge: Callable[..., Any], submitted: list[Any]) -> Any:
        """The merged result of all"""


class InProcess(Executor):
    """Blocks on the threads of this process; what is cached stays in its memory."""

    def close(self) -> None:  # noqa: D102
        if self._spec is not None:
            forget(self._spec.job)

    def _submit(self, number: int, task: Callable[..., Any], *arguments: Any) -> Any:
        return partial(task, *arguments)

    def _gather(self, submitted: list[Any]) -> list[Any]:
        with one_blas_thread():
            return list(map_threads(lambda task: task(), submitted))

    def _reduce(self, merge: Callable[..., Any], submitted: list[Any]) -> Any:
        return tree(partial(reduce, merge), self._gather(submitted))


class OnDask(Executor):
    """Blocks on the workers of a Dask client."""

    def __init__(self, table: Table, client: Any) -> None:
        super().__init__(table)
        self._client = client
        self._worker_of: list[str] = []

    def memory_each(self) -> float:  # noqa: D102
        limits = [worker["memory_limit"] or float("inf") for worker in workers_of(self._client).values()]
        return max(MEMORY_SHARE * min(limits, default=0.0) - LEAST_MEMORY, 0.0)

    def close(self) -> None:  # noqa: D102
        if self._spec is not None:
            self._client.run(forget, self._spec.job, on_error="ignore")

    def _source(self, number: int) -> Any:
        block = self.table.blocks[number]
        return self._client.compute(block.delayed) if isinstance(block, LazyBlock) else block

    def _share(self, value: Any) -> Any:
        # A task and not scattered data: the scheduler can make it again when the worker that has it is lost.
        return self._client.submit(block_cache.same, value, pure=False)

    def _submit(self, number: int, task: Callable[..., Any], *arguments: Any) -> Any:
        if number == 0 or not self._worker_of:
            self._place()
        worker = self._worker_of[number]
        return self._client.submit(task, *arguments, workers=[worker], allow_other_workers=True, pure=False)

    def _gather(self, submitted: list[Any]) -> list[Any]:
        return self._client.gather(submitted)

    def _reduce(self, merge: Callable[..., Any], submitted: list[Any]) -> Any:
        combine = partial(self._client.submit, block_cache.combined, merge, pure=False)
        return tree(lambda parts: combine(*parts), submitted).result()

    def _place(self) -> None:
        """A worker for every block: the one it had, unless that is gone or has more blocks than its share."""
        alive = list(workers_of(self._client))
        if not alive:
            self._client.wait_for_workers(1)
            alive = list(workers_of(self._client))
        places = self._worker_of or [alive[b % len(alive)] for b in self._numbers]
        load = {worker: places.count(worker) for worker in alive}
        most = -(-len(places) // len(alive))
        for number, worker in enumerate(places):
            if worker not in load or load[worker] > most:
                if worker in load:
                    load[worker] -= 1
                places[number] = min(load, key=lambda other: load[other])
                load[places[number]] += 1
        self._worker_of = places
