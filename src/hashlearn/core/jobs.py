"""Runs one fit for each item on several threads. Results come in order, so the number of threads has no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import map_threads, n_threads

STAGE = "hash functions"
Item = TypeVar("Item")
Result = TypeVar("Result")


def fit_each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int | None,
    progress: ProgressCallback | None,
) -> list[Result]:
    """``function`` of every item on ``n_jobs`` threads (None: all cores)."""
    return with_progress(_spread(function, items, n_jobs), len(items), progress)


def with_progress(
    results: Iterable[Result], total: int, progress: ProgressCallback | None, stage: str = STAGE
) -> list[Result]:
    """The results as a list; ``progress`` is called after each."""
    done: list[Result] = []
    for result in results:
        done.append(result)
        tell(progress, stage, len(done), total)
    return done


def _spread(function: Callable[[Item], Result], items: Sequence[Item], n_jobs: int | None) -> Iterator[Result]:
    if n_jobs is None and len(items) > 1:
        yield from map_threads(function, items)
        return
    size = 1 if n_jobs is None else min(_threads_for(n_jobs), len(items))
    if size <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(size) as pool:
        yield from pool.map(function, items)


def _threads_for(n_jobs: int) -> int:
    """The number of threads as in scikit-learn: −1 is all cores, −2 all but one."""
    if n_jobs == 0:
        raise ValueError("n_jobs must be a positive number of threads, -1 for all cores, or None, got 0")
    return n_jobs if n_jobs > 0 else max(1, n_threads() + 1 + n_jobs)
