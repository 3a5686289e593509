"""What a long computation says of itself: its progress, to one kind of callback, and the seconds of compilation.

The one progress bar is drawn by tqdm on standard error: stage, bar, done of total, time so far and time left. Commands
draw it in a terminal only. ``verbose=True`` draws it in notebooks too, and every ten seconds where output goes to a
file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

SECONDS_BETWEEN_DRAWS = 0.2
SECONDS_BETWEEN_LINES = 10.0  # where nobody watches, as in a log file


@dataclass(frozen=True)
class Progress:
    """How far a long computation has come. Subclasses say more.

    >>> Progress("inference", 3, 12).fraction
    0.25
    """

    stage: str  # what is being done
    done: float
    total: float | None  # in the unit of ``done``; None if nobody knows

    @property
    def fraction(self) -> float | None:
        """``done`` as a part of ``total``."""
        return self.done / self.total if self.total else None


ProgressCallback: TypeAlias = Callable[[Any], Any]  # called with a Progress or a subclass of it


def tell(progress: ProgressCallback | None, stage: str, done: float, total: float | None) -> None:
    """Call ``progress`` if there is one."""
    if progress is not None:
        progress(Progress(stage, done, total))


class ProgressBar:
    """A progress callback that draws the newest `Progress`.

    ``extra`` makes text for the end of the line from a subclass of `Progress`. ``always`` draws outside terminals too.
    """

    def __init__(self, quiet: bool, *, extra: Callable[[Any], str] | None = None, always: bool = False) -> None:
        from tqdm import tqdm

        is_terminal = sys.stderr.isatty()
        self._is_watched = is_terminal or "ipykernel" in sys.modules  # a terminal or a notebook
        self._extra = extra
        hidden = quiet or not (always or is_terminal)
        self._bar = tqdm(file=sys.stderr, disable=hidden, leave=False, delay=1e9, dynamic_ncols=True)
        self._stage, self._last_draw = "", time.monotonic()

    def begin(self, stage: str) -> None:
        """Show a stage that cannot report how far it is."""
        self(Progress(stage, 0, None))

    def __call__(self, progress: Progress) -> None:
        """Draw a new stage at once where somebody watches; after that, draw again only after some time."""
        if self._bar.disable:
            return
        bar, now = self._bar, time.monotonic()
        if progress.total != bar.total or progress.done < bar.n:
            bar.total, bar.initial, bar.start_t = progress.total, progress.done, time.time()
        bar.n = progress.done
        is_new = self._is_watched and progress.stage != self._stage
        if is_new or now - self._last_draw >= (SECONDS_BETWEEN_DRAWS if self._is_watched else SECONDS_BETWEEN_LINES):
            self._stage, self._last_draw = progress.stage, now
            self._draw(progress)

    def _draw(self, progress: Progress) -> None:
        counts = ""
        if progress.total:
            done = "{n:,.0f}/{total:,.0f}" if progress.total > 1 else "{percentage:.0f}%"
            counts = f"{{bar:20}} {done}, {{remaining}} left, "
        self._bar.bar_format = f"{{desc}} {counts}{{elapsed}}{{postfix}}"
        self._bar.set_description_str(progress.stage, refresh=False)
        if self._extra is not None and type(progress) is not Progress:
            self._bar.set_postfix_str(self._extra(progress), refresh=False)
        self._bar.refresh()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.clear()  # close() does not erase a bar whose count is 0
        self._bar.close()


@contextmanager
def watched(progress: ProgressCallback | None, verbose: Any) -> Iterator[ProgressCallback | None]:
    """The callback of a long computation: ``progress``, and a bar as well if ``verbose``."""
    if not isinstance(verbose, bool | int):
        raise ValueError(f"verbose must be True or False, got {verbose!r}")
    if not verbose:
        yield progress
        return
    with ProgressBar(False, always=True) as bar:

        def both(report: Any) -> None:
            bar(report)
            if progress is not None:
                progress(report)

        yield both


@contextmanager
def compilation_clock() -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds Numba has spent on compilation; loads from its cache do not count.

    Time limits leave them out, since the first call on a machine takes seconds more.
    """
    from numba.core import event

    class Clock(event.Listener):
        depth = 0  # a kernel is compiled while one that calls it is
        since, seconds = 0.0, 0.0

        def on_start(self, compilation: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                self.since = time.perf_counter()

        def on_end(self, compilation: Any) -> None:
            self.depth -= 1
            if not self.depth:
                self.seconds += time.perf_counter() - self.since

        def so_far(self) -> float:
            return self.seconds + (time.perf_counter() - self.since if self.depth else 0.0)

    clock = Clock()
    with event.install_listener("numba:compile", clock):
        yield clock.so_far
