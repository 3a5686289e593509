"""One pool of threads at a time.

BLAS is held to one thread while a solver runs, and the heavy passes over rows are spread over Python threads
instead (NumPy and our kernels release the GIL). Two things follow: no second pool fights the first, and results do
not depend on the number of threads, because rows are cut into blocks by n alone and sums are added in block order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from hashlearn.core.arrays import FloatArray

Item = TypeVar("Item")
Result = TypeVar("Result")

ROWS_PER_BLOCK = 4096
NUMBERS_PER_BLOCK = 320_000  # wide rows come in smaller blocks
_here = threading.local()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside the block."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Inside `one_blas_thread`: let BLAS use every core for one large factorisation whose rounding does not matter."""
    with _controller().limit(limits=n_threads(), user_api="blas"):
        yield


def block_rows(width: int = 1) -> int:
    """Rows in a block of an array with ``width`` columns: a matter of its shape alone."""
    return max(256, min(ROWS_PER_BLOCK, NUMBERS_PER_BLOCK // max(width, 1) // 256 * 256))


def map_row_blocks(function: Callable[[int, int], Result], n: int, width: int = 1) -> list[Result]:
    """``function(first, last)`` for every block of rows, in order; on all cores when there are several blocks."""
    return list(_row_blocks(function, n, width))


def sum_row_blocks(function: Callable[[int, int], FloatArray], n: int, width: int = 1) -> FloatArray:
    """The sum of ``function(first, last)`` over all blocks of rows, always added in the same order."""
    total: FloatArray | None = None
    for part in _row_blocks(function, n, width):
        total = part if total is None else total.__iadd__(part)
    assert total is not None
    return total


def map_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """``function`` of every item, in order, on all cores; called from within such a function, on this thread alone."""
    if n_threads() == 1 or getattr(_here, "is_worker", False):
        return map(function, items)
    return _pool(n_threads(), os.getpid()).map(function, items)


@contextmanager
def on_this_thread() -> Iterator[None]:
    """Inside: `map_threads` opens no threads, because whoever calls has given every core work already."""
    before = getattr(_here, "is_worker", False)
    _here.is_worker = True
    try:
        yield
    finally:
        _here.is_worker = before


def n_threads() -> int:
    """Cores this process may use; ``HASHLEARN_NUM_THREADS`` overrides."""
    wanted = os.environ.get("HASHLEARN_NUM_THREADS")
    if wanted:
        return max(1, int(wanted))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _row_blocks(function: Callable[[int, int], Result], n: int, width: int) -> Iterator[Result]:
    rows = block_rows(width)
    edges = [(a, min(a + rows, n)) for a in range(0, n, rows)]
    if len(edges) < 3:
        return (function(a, b) for a, b in edges)
    return map_threads(lambda edge: function(*edge), edges)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(size: int, process: int) -> ThreadPoolExecutor:
    """One pool for each process: a forked child must not wait for its parent's threads."""
    return ThreadPoolExecutor(size, thread_name_prefix="hashlearn", initializer=_become_worker)


def _become_worker() -> None:
    _here.is_worker = True  # a worker that waited for other workers could wait for ever
