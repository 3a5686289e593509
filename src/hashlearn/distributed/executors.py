"""Where passes over blocks run: in this process, or on Dask workers. Both give the same numbers.

A pass is ``function`` of every block; results come back in the order of blocks, or merged in a tree that only the
number of blocks sets. Here is what both offer, and the way without Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.distributed import tasks
from hashlearn.distributed.block_cache import MISSING, BlockState, FactorSpec, forget
from hashlearn.distributed.blocks import Table
from hashlearn.distributed.moments import folded, tree
from hashlearn.inference.passes import Outcome


class Executor(Protocol):
    """Passes over the blocks of one table."""

    table: Table

    def map_rows(self, function: Callable[..., Any], *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """``function(rows, *each[block], *common)`` for every block."""

    def reduce_rows(
        self, function: Callable[..., Any], merge: Callable, *common: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """The same, merged."""

    def keep(self, spec: FactorSpec, function: Callable[[BlockState], Any]) -> list[Any]:
        """Make and keep every block's factor; ``function`` of each."""

    def map_states(
        self,
        function: Callable[..., Any],
        version: int,
        outcomes: Sequence[Outcome] | None,
        codes: Sequence[NDArray[np.uint8]] | None,
        *common: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """``function(state, *each[block], *common)`` once ``outcomes`` of the last pass are taken up; ``codes`` are
        those of ``version``, for workers that lost theirs."""

    def memory_each(self) -> float:
        """Bytes that one process may keep in memory between passes."""

    def close(self) -> None:
        """Forget what was kept."""


class InProcess:
    """Blocks on the threads of this process; what is kept stays in its memory."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._spec: FactorSpec | None = None

    def map_rows(self, function: Callable[..., Any], *common: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """See `Executor`."""

        def one(number: int) -> Any:
            block = self.table.blocks[number]
            own = () if each is None else each[number]
            return tasks.on_rows(function, block, block.name, self.table.n_features, own, common)

        return self._all(one)

    def reduce_rows(
        self, function: Callable[..., Any], merge: Callable, *common: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """See `Executor`."""
        return tree(partial(folded, merge), self.map_rows(function, *common, each=each))

    def keep(self, spec: FactorSpec, function: Callable[[BlockState], Any]) -> list[Any]:
        """See `Executor`."""
        self._spec = spec

        def one(number: int) -> Any:
            block = self.table.blocks[number]
            return tasks.put(block, block.name, self.table.n_features, spec, number, function)

        return self._all(one)

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
        spec = self._spec
        assert spec is not None

        def one(number: int) -> Any:
            outcome = Outcome.KEEP if outcomes is None else outcomes[number]
            own = () if each is None else each[number]
            found = tasks.on_state(function, spec, number, version, outcome, (*own, *common))
            assert found is not MISSING
            return found

        return self._all(one)

    def memory_each(self) -> float:
        """See `Executor`."""
        return float("inf")

    def close(self) -> None:
        """See `Executor`."""
        if self._spec is not None:
            forget(self._spec.job)

    def _all(self, one: Callable[[int], Any]) -> list[Any]:
        with one_blas_thread():
            return list(map_threads(one, range(len(self.table.blocks))))
