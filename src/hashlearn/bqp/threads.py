"""One pool of threads at a time.

BLAS is held to one thread while a solver runs, and the heavy passes over rows are spread over Python threads
instead (NumPy and our kernels release the GIL). Two things follow: no second pool fights the first, and results do
not depend on the number of threads, because rows are cut into blocks by n alone and sums are added in block order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

ROWS_PER_BLOCK = 4096


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside the block."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


def map_row_blocks(function: Callable[[int, int], Result], n: int) -> list[Result]:
    """``function(first, last)`` for every block of rows, in order; on all cores when there are several blocks."""
    edges = [(a, min(a + ROWS_PER_BLOCK, n)) for a in range(0, n, ROWS_PER_BLOCK)]
    if len(edges) < 3 or n_threads() == 1:
        return [function(a, b) for a, b in edges]
    return list(_pool(n_threads(), os.getpid()).map(lambda edge: function(*edge), edges))


def n_threads() -> int:
    """Cores this process may use; ``HASHLEARN_NUM_THREADS`` overrides."""
    wanted = os.environ.get("HASHLEARN_NUM_THREADS")
    if wanted:
        return max(1, int(wanted))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _pool(size: int, process: int) -> ThreadPoolExecutor:
    """One pool for each process: a forked child must not wait for its parent's threads."""
    return ThreadPoolExecutor(size, thread_name_prefix="hashlearn")
