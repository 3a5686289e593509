"""Threads: BLAS computes on one, and blocks of rows are spread over a pool of Python threads.

While a solver runs, BLAS is limited to one thread. Long passes over rows use Python threads instead, because NumPy and
our compiled kernels release the GIL. So two pools never compete for the cores. Results do not depend on the number of
threads either: the blocks depend on n alone, and sums are added in the order of the blocks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

from hashlearn.core.arrays import FloatArray

Item = TypeVar("Item")
Result = TypeVar("Result")

ROWS_PER_BLOCK = 4096
NUMBERS_PER_BLOCK = 320_000  # wide rows come in smaller blocks


class _Here(threading.local):
    """What one thread knows about itself."""

    is_worker = False
    blas_depth = 0  # how many `one_blas_thread` blocks it is in


class _BlasThreads:
    """The number of BLAS threads. The whole process shares it, so every user is counted.

    threadpoolctl alone restores the number when the thread that set it leaves, while others still compute.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0  # Python threads inside `one_blas_thread`
        self._users_of_all = 0
        self._limit: int | None = None  # None: as BLAS came
        self._original: Any = None  # restores the numbers from before the first limit
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._after_fork
            )

    def change(self, inside: int, users_of_all: int) -> None:
        """Add to both counts of users, and set what they now need."""
        with self._lock:
            self._inside += inside
            self._users_of_all += users_of_all
            # With several threads inside, more BLAS threads would disturb the others.
            most = n_threads() if self._users_of_all and self._inside <= 1 else 1
            count = most if self._inside or self._users_of_all else None
            if count != self._limit:
                _free_controlling_thread()
                if count is None:
                    self._original.restore_original_limits()
                    self._original = None
                else:
                    limiter = _controller().limit(limits=count, user_api="blas")
                    self._original = self._original or limiter
                self._limit = count
                _free_controlling_thread()

    def _after_fork(self) -> None:
        """Only the forking thread lives on in a child. Its next block sets the number of threads, if it has to change.

        Setting it here could wait for a lock of BLAS that a thread of the parent holds.
        """
        self._lock.release()
        self._inside, self._users_of_all = int(_here.blas_depth > 0), 0


_here = _Here()
_blas = _BlasThreads()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread inside the block. Blocks may be nested, and several threads may be inside."""
    if _here.blas_depth == 0:
        _blas.change(inside=1, users_of_all=0)
    _here.blas_depth += 1
    try:
        yield
    finally:
        _here.blas_depth -= 1
        if _here.blas_depth == 0:
            _blas.change(inside=-1, users_of_all=0)


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Inside `one_blas_thread`: let BLAS use every core for one large factorization whose rounding does not matter.

    BLAS keeps one thread while other Python threads are inside `one_blas_thread` too.
    """
    _blas.change(inside=0, users_of_all=1)
    try:
        yield
    finally:
        _blas.change(inside=0, users_of_all=-1)


def block_rows(width: int = 1) -> int:
    """Rows in a block of an array with ``width`` columns. It depends on nothing else."""
    return max(256, min(ROWS_PER_BLOCK, NUMBERS_PER_BLOCK // max(width, 1) // 256 * 256))


def map_row_blocks(function: Callable[[int, int], Result], n: int, width: int = 1) -> list[Result]:
    """``function(first, last)`` of every block of rows, in order. Three blocks or more are computed on all cores."""
    return list(iter_row_blocks(function, n, width))


def sum_row_blocks(function: Callable[[int, int], FloatArray], n: int, width: int = 1) -> FloatArray:
    """The sum of ``function(first, last)`` over all blocks of rows, always added in the same order."""
    total: FloatArray | None = None
    for part in iter_row_blocks(function, n, width):
        total = part if total is None else total.__iadd__(part)
    assert total is not None
    return total


def iter_row_blocks(function: Callable[[int, int], Result], n: int, width: int = 1) -> Iterator[Result]:
    """`map_row_blocks`, one result after the other."""
    rows = block_rows(width)
    edges = [(a, min(a + rows, n)) for a in range(0, n, rows)]
    if len(edges) < 3:
        return (function(a, b) for a, b in edges)
    return map_threads(lambda edge: function(*edge), edges)


def map_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """``function`` of every item, in order, on all cores. One item, or a worker of the pool, stays on its thread."""
    items = list(items)
    if len(items) < 2 or n_threads() == 1 or _here.is_worker:
        return map(function, items)
    return _pool(n_threads(), os.getpid()).map(function, items)


@contextmanager
def on_this_thread() -> Iterator[None]:
    """Inside the block `map_threads` starts no threads: the caller has given every core work already."""
    before = _here.is_worker
    _here.is_worker = True
    try:
        yield
    finally:
        _here.is_worker = before


def n_threads() -> int:
    """Cores this process may use; ``HASHLEARN_NUM_THREADS`` overrides."""
    setting = os.environ.get("HASHLEARN_NUM_THREADS")
    if setting:
        return max(1, int(setting))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_controlling_thread() -> None:
    """From threadpoolctl 3.8 on, one thread controls OpenBLAS and calls of the others do nothing; ours need to."""
    getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)(force=True)


@cache
def _controller() -> ThreadpoolController:
    """The libraries that NumPy and SciPy use. Others bring a BLAS of their own, such as FAISS, whose threads we leave.

    The BLAS of FAISS keeps a number for each thread, so another thread could not restore it.
    """
    known = ThreadpoolController()
    return known.select(filepath=[path for library in known.info() if not _is_foreign(path := library["filepath"])])


def _is_foreign(path: str) -> bool:
    """Whether a wheel of another package brought the library.

    >>> _is_foreign("/lib/faiss_cpu.libs/libopenblas.so"), _is_foreign("/lib/numpy.libs/libopenblas.so")
    (True, False)
    """
    folder = os.path.basename(os.path.dirname(path))
    return folder.endswith(".libs") and not folder.startswith(("numpy", "scipy"))


@cache
def _pool(size: int, process: int) -> ThreadPoolExecutor:
    """One pool for each process: the threads of its parent do not exist in a forked child."""
    return ThreadPoolExecutor(size, thread_name_prefix="hashlearn", initializer=_become_worker)


def _become_worker() -> None:
    _here.is_worker = True  # workers that wait for other workers could deadlock
