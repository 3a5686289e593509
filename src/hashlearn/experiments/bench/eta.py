"""The progress of a run and the time left, estimated from the seconds of similar cells, stored or just finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hashlearn.core.progress import Progress, ProgressCallback
from hashlearn.experiments.bench.tables import Cell

PARTS = ("fit", "encode", "evaluate")  # of a record's seconds; inference is a part of fit


@dataclass(frozen=True)
class RunProgress(Progress):
    """``done`` of ``total`` cells have ended."""

    seconds_left: float | None  # None before any cell has ended


class Clock:
    """Counts cells and reports progress."""

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
        """Report what is being done now."""
        if self._progress is not None:
            self._progress(RunProgress(what, self._total - len(self._left), self._total, self.seconds_left()))

    def stages_of(self, cell: Cell) -> Callable[[str], None]:
        """A function that reports a stage of this cell."""
        return lambda what: self.tell(f"{cell}: {what}")

    def ended(self, cell: Cell, seconds: float | None, parallel: int = 1) -> None:
        """Count a cell as ended. ``seconds`` is None for a failed cell, which tells nothing about others."""
        self._left.pop(cell, None)
        self._parallel = parallel
        self._last_end = time.perf_counter()
        if seconds is not None:
            self._seen.append((cell, seconds))
        self.tell(str(cell))

    def seconds_left(self) -> float | None:
        """Estimate for the remaining cells, minus the time since the last one ended; None before any has."""
        if not self._seen:
            return None
        whole = sum(self._estimate(cell) for cell in self._left) / self._parallel
        return max(0.0, whole - (time.perf_counter() - self._last_end))

    def _estimate(self, cell: Cell) -> float:
        """The mean of the most similar cells."""
        for kind in _KINDS:
            found = [seconds for other, seconds in self._seen if kind(other) == kind(cell)]
            if found:
                return fmean(found)
        raise AssertionError("the last kind holds every cell")


# What similar cells have in common, most similar first.
_KINDS: tuple[Callable[[Cell], object], ...] = (
    lambda cell: (cell.dataset, cell.n_bits, cell.method),
    lambda cell: (cell.n_bits, cell.method),
    lambda cell: cell.method,
    lambda cell: None,
)
