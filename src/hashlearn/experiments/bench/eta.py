"""How far a run is, and how long it will take: judged by the seconds of cells alike, stored before or just finished."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hashlearn.core.progress import Progress, ProgressCallback
from hashlearn.experiments.bench.tables import Cell

PARTS = ("fit", "encode", "evaluate")  # of a record's seconds; inference is a part of fit


@dataclass(frozen=True)
class RunProgress(Progress):
    """Where a run is: ``done`` of ``total`` cells."""

    seconds_left: float | None  # None until there is something to judge by


class Clock:
    """Counts cells and tells the caller."""

    def __init__(
        self,
        todo: Iterable[Cell],
        stored: Mapping[Cell, Mapping[str, Any]],
        progress: ProgressCallback | None,
    ) -> None:
        self._left = dict.fromkeys(todo)
        self._total = len(self._left)
        self._progress = progress
        self._parallel = 1
        self._last_end = time.perf_counter()
        self._seen = [(cell, sum(record["seconds"].get(p) or 0.0 for p in PARTS)) for cell, record in stored.items()]

    def tell(self, what: str) -> None:
        """Say what is being done now."""
        if self._progress is not None:
            self._progress(RunProgress(what, self._total - len(self._left), self._total, self.seconds_left()))

    def ended(self, cell: Cell, seconds: float | None, parallel: int = 1) -> None:
        """Strike a cell off; ``seconds`` is None where it failed and says nothing about others."""
        self._left.pop(cell, None)
        self._parallel = parallel
        self._last_end = time.perf_counter()
        if seconds is not None:
            self._seen.append((cell, seconds))
        self.tell(str(cell))

    def seconds_left(self) -> float | None:
        """For the cells that are left, less what those under way have had; None where nothing has been seen yet."""
        if not self._seen:
            return None
        whole = sum(self._estimate(cell) for cell in self._left) / self._parallel
        return max(0.0, whole - (time.perf_counter() - self._last_end))

    def _estimate(self, cell: Cell) -> float:
        """The mean of the cells most like it."""
        for alike in (_same_entry, _same_method_and_bits, _same_method):
            found = [seconds for other, seconds in self._seen if alike(cell, other)]
            if found:
                return fmean(found)
        return fmean(seconds for _, seconds in self._seen)


def _same_entry(a: Cell, b: Cell) -> bool:
    return a.dataset == b.dataset and _same_method_and_bits(a, b)


def _same_method_and_bits(a: Cell, b: Cell) -> bool:
    return a.n_bits == b.n_bits and _same_method(a, b)


def _same_method(a: Cell, b: Cell) -> bool:
    return a.method == b.method
