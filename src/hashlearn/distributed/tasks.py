"""What runs on a worker: functions of one block, with BLAS held to one thread and no threads of our own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from hashlearn.bqp.threads import on_this_thread, one_blas_thread
from hashlearn.distributed.kept import MISSING, Kept, Recipe, shelf
from hashlearn.distributed.moments import folded
from hashlearn.distributed.tables import checked_rows

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_core() -> Iterator[None]:
    """One core for this task. Threads of a worker share BLAS: the last one out restores it, not the first."""
    global _inside, _limit
    with _lock:
        _inside += 1
        if _inside == 1:
            _limit = one_blas_thread()
            _limit.__enter__()
    try:
        with on_this_thread():
            yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.__exit__(None, None, None)
        if "pyarrow" in sys.modules:  # whose allocator keeps what it freed, several times the size of a block
            sys.modules["pyarrow"].default_memory_pool().release_unused()


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


def put(source: Any, name: str, n_features: int, recipe: Recipe, number: int, function: Callable[[Kept], Any]) -> Any:
    """Make and keep the factor of a block; returns ``function`` of it."""
    with one_core():
        return function(shelf(recipe, _folder()).put(number, loaded(source, name, n_features)))


def on_kept(
    function: Callable[..., Any], recipe: Recipe, number: int, version: int, outcome: int, arguments: Sequence[Any]
) -> Any:
    """``function(kept, *arguments)``, or `MISSING` where this worker has no such block at that version."""
    with one_core():
        kept = shelf(recipe, _folder()).blocks.get(number)
        if kept is None or not kept.reached(version, outcome):
            return MISSING
        return function(kept, *arguments)


def on_restored(
    function: Callable[..., Any],
    source: Any,
    name: str,
    n_features: int,
    recipe: Recipe,
    number: int,
    codes: NDArray[Any] | None,
    version: int,
    arguments: Sequence[Any],
) -> Any:
    """The same after the block was made again from its rows and from the codes that the client has."""
    with one_core():
        kept = shelf(recipe, _folder()).put(number, loaded(source, name, n_features))
        kept.codes, kept.version = None if codes is None else codes.copy(), version
        return function(kept, *arguments)


def _folder() -> str | None:
    """Of this worker, for its files; None outside of Dask."""
    try:
        from distributed import get_worker  # type: ignore[import-not-found, unused-ignore]

        return str(get_worker().local_directory)
    except (ImportError, ValueError):
        return None
