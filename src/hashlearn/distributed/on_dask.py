"""Passes over blocks on the workers of a Dask client.

A block stays with one worker while that lives, because the worker keeps parts of it (`kept`); when a worker is lost its
blocks are made again elsewhere, by the same functions from the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.distributed import tasks
from hashlearn.distributed.block_cache import MISSING, BlockState, FactorSpec, forget
from hashlearn.distributed.blocks import LazyBlock, Table
from hashlearn.distributed.client import LEAST_MEMORY, workers_of
from hashlearn.distributed.moments import tree
from hashlearn.inference.passes import Outcome

# Between passes a worker keeps up to this share of its memory limit, less what it needs for itself and for one block.
MEMORY_SHARE = 0.6


class OnDask:
    """Blocks on the workers of a Dask client."""

    def __init__(self, table: Table, client: Any) -> None:
        self.table, self._client = table, client
        self._spec: FactorSpec | None = None
        self._shared: Any = None
        self._home: list[str] = []

    def map_rows(self, function: Callable[..., Any], *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """See `Executor`."""
        return self._client.gather(self._rows(function, common, each))

    def reduce_rows(
        self, function: Callable[..., Any], merge: Callable, *common: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """See `Executor`."""
        submit = partial(self._client.submit, tasks.combined, merge, pure=False)
        return tree(lambda parts: submit(*parts), self._rows(function, common, each)).result()

    def keep(self, spec: FactorSpec, function: Callable[[BlockState], Any]) -> list[Any]:
        """See `Executor`."""
        self._spec = spec
        # A task and not scattered data: the scheduler can make it again when the worker that has it is lost.
        self._shared = self._client.submit(tasks.same, spec, pure=False)
        names, width = [block.name for block in self.table.blocks], self.table.n_features
        return self._client.gather(
            [
                self._submit(
                    number, tasks.put, self._source(number), names[number], width, self._shared, number, function
                )
                for number in range(len(names))
            ]
        )

    def map_states(
        self,
        function: Callable[..., Any],
        version: int,
        outcomes: Sequence[Outcome] | None,
        codes: Sequence[NDArray[np.uint8]] | None,
        *common: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """See `Executor`."""
        arguments = [(*(() if each is None else each[number]), *common) for number in range(len(self.table.blocks))]
        ends = [Outcome.KEEP] * len(arguments) if outcomes is None else outcomes
        found = self._client.gather(
            [
                self._submit(
                    number, tasks.on_state, function, self._shared, number, version, ends[number], arguments[number]
                )
                for number in range(len(arguments))
            ]
        )
        lost = [number for number, result in enumerate(found) if isinstance(result, str) and result == MISSING]
        again = self._client.gather(
            [
                self._submit(
                    number,
                    tasks.on_restored,
                    function,
                    self._source(number),
                    self.table.blocks[number].name,
                    self.table.n_features,
                    self._shared,
                    number,
                    None if codes is None else codes[number],
                    version,
                    arguments[number],
                )
                for number in lost
            ]
        )
        for number, result in zip(lost, again, strict=True):
            found[number] = result
        return found

    def memory_each(self) -> float:
        """See `Executor`."""
        limits = [worker["memory_limit"] or float("inf") for worker in self._workers().values()]
        return max(MEMORY_SHARE * min(limits, default=0.0) - LEAST_MEMORY, 0.0)

    def close(self) -> None:
        """See `Executor`."""
        if self._spec is not None:
            self._client.run(forget, self._spec.job, on_error="ignore")

    def _rows(self, function: Callable[..., Any], common: Sequence[Any], each: Sequence[Any] | None) -> list[Any]:
        blocks, width = self.table.blocks, self.table.n_features
        shared = self._client.submit(tasks.same, common, pure=False) if common else ()
        return [
            self._submit(
                number,
                tasks.on_rows,
                function,
                self._source(number),
                block.name,
                width,
                () if each is None else each[number],
                shared,
            )
            for number, block in enumerate(blocks)
        ]

    def _source(self, number: int) -> Any:
        block = self.table.blocks[number]
        return self._client.compute(block.delayed) if isinstance(block, LazyBlock) else block

    def _submit(self, number: int, task: Callable[..., Any], *arguments: Any) -> Any:
        if number == 0 or not self._home:
            self._settle()
        return self._client.submit(task, *arguments, workers=[self._home[number]], allow_other_workers=True, pure=False)

    def _settle(self) -> None:
        """A home for every block: the one it had, unless that worker is gone or others have come and have fewer."""
        alive = list(self._workers())
        if not alive:
            self._client.wait_for_workers(1)
            alive = list(self._workers())
        homes = self._home or [alive[number % len(alive)] for number in range(len(self.table.blocks))]
        load = {worker: homes.count(worker) for worker in alive}
        most = -(-len(homes) // len(alive))
        for number, home in enumerate(homes):
            if home not in load or load[home] > most:
                if home in load:
                    load[home] -= 1
                homes[number] = min(load, key=lambda worker: load[worker])
                load[homes[number]] += 1
        self._home = homes

    def _workers(self) -> dict[str, Any]:
        return workers_of(self._client)
