"""Runs one fit for each item on several threads. Results come in order, so the number of threads has no effect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sklearn.utils.parallel import Parallel, delayed

from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import n_threads

STAGE = "hash functions"
Item = TypeVar("Item")
Result = TypeVar("Result")


def fit_each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int | None,
    progress: ProgressCallback | None,
) -> list[Result]:
    """``function`` of every item on ``n_jobs`` threads, counted as in joblib; None or −1: all that we may use."""
    count = n_threads() if n_jobs in (None, -1) else n_jobs
    results = Parallel(n_jobs=count, prefer="threads", return_as="generator")(delayed(function)(item) for item in items)
    return with_progress(results, len(items), progress)


def with_progress(
    results: Iterable[Result], total: int, progress: ProgressCallback | None, stage: str = STAGE
) -> list[Result]:
    """The results as a list; ``progress`` is called after each."""
    done: list[Result] = []
    for result in results:
        done.append(result)
        tell(progress, stage, len(done), total)
    return done
