"""What runs on a worker: functions of one block, with BLAS held to one thread and no threads of our own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from multiprocessing import parent_process
from typing import Any

from numpy.typing import NDArray

from hashlearn.core.threads import on_this_thread, one_blas_thread
from hashlearn.distributed.block_cache import MISSING, BlockState, FactorSpec, cache_of
from hashlearn.distributed.blocks import checked_rows
from hashlearn.distributed.moments import folded
from hashlearn.inference.passes import Outcome


@contextmanager
def one_core() -> Iterator[None]:
    """One core for this task.

    threadpoolctl lets one thread at a time limit BLAS and ignores the others in silence, so a worker process is held to
    one thread once and for all. In the caller's own process the caller holds BLAS (`executors.InProcess`, `fit`).
    """
    with on_this_thread(), ExitStack() as stack:
        if _worker() is not None:
            if parent_process() is None:
                stack.enter_context(one_blas_thread())
            else:
                _hold_blas()
        yield
    if "pyarrow" in sys.modules:  # whose allocator keeps what it freed, several times the size of a block
        sys.modules["pyarrow"].default_memory_pool().release_unused()


@cache
def _hold_blas() -> ExitStack:
    stack = ExitStack()
    stack.enter_context(one_blas_thread())
    return stack


def loaded(source: Any, name: str, n_features: int) -> NDArray[Any]:
    """Rows of a block, checked; ``source`` is the block, or its rows where the scheduler has computed them."""
    return checked_rows(source.load() if hasattr(source, "load") else source, name, n_features)


def on_rows(
    function: Callable[..., Any], source: Any, name: str, n_features: int, each: Sequence[Any], common: Sequence[Any]
) -> Any:
    """``function(rows, *each, *common)``."""
    with one_core():
        return function(loaded(source, name, n_features), *each, *common)


def combined(combine: Callable[[Any, Any], Any], *parts: Any) -> Any:
    """Parts merged from the left."""
    with one_core():
        return folded(combine, parts)


def put(
    source: Any, name: str, n_features: int, spec: FactorSpec, number: int, function: Callable[[BlockState], Any]
) -> Any:
    """Make and keep the factor of a block; returns ``function`` of it."""
    with one_core():
        return function(cache_of(spec, _folder()).put(number, loaded(source, name, n_features)))


def on_state(
    function: Callable[..., Any],
    spec: FactorSpec,
    number: int,
    version: int,
    outcome: Outcome,
    arguments: Sequence[Any],
) -> Any:
    """``function(state, *arguments)``, or `MISSING` where this worker has no such block at that version."""
    with one_core():
        state = cache_of(spec, _folder()).blocks.get(number)
        if state is None or not state.reached(version, outcome):
            return MISSING
        return function(state, *arguments)


def on_restored(
    function: Callable[..., Any],
    source: Any,
    name: str,
    n_features: int,
    spec: FactorSpec,
    number: int,
    codes: NDArray[Any] | None,
    version: int,
    arguments: Sequence[Any],
) -> Any:
    """The same after the block was made again from its rows and from the codes that the client has."""
    with one_core():
        state = cache_of(spec, _folder()).put(number, loaded(source, name, n_features))
        state.codes, state.version = None if codes is None else codes.copy(), version
        return function(state, *arguments)


def _folder() -> str | None:
    """Of this worker, for its files; None outside of Dask."""
    worker = _worker()
    return None if worker is None else str(worker.local_directory)


def _worker() -> Any:
    """The Dask worker that runs this task, None outside of Dask."""
    if "distributed" not in sys.modules:
        return None
    try:
        return sys.modules["distributed"].get_worker()
    except ValueError:
        return None


def same(value: Any) -> Any:
    """Itself: a value that is sent once and then named by its future."""
    return value
