"""The one progress bar: stage, bar, done of total, time so far and time left, on standard error.

The bar appears after half a second. A thread redraws it, so its clock keeps running during a long step. Commands draw
it in a terminal only; ``verbose=True`` draws it in notebooks too, and every ten seconds where output goes to a file.

The first fit on a machine compiles kernels, which takes seconds; numba then keeps them in a cache. `watched` says so.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

from hashlearn.core.progress import Progress, ProgressCallback

Extra: TypeAlias = Callable[[Any], str] | None

SECONDS_BEFORE = 0.5
SECONDS_BETWEEN_DRAWS = 0.2
SECONDS_BETWEEN_LINES = 10.0  # where nobody watches, as in a log file
COMPILING = "compiling kernels, once on this machine"

log = logging.getLogger(__name__)


class ProgressBar:
    """A progress callback that draws the newest `Progress`.

    ``prefix`` stands in front of every stage. ``extra`` makes text for the end of the line from a subclass of
    `Progress`. ``always`` draws outside terminals too. The attribute ``time_limit`` (seconds) bounds the time shown
    as left.
    """

    def __init__(
        self,
        quiet: bool,
        *,
        prefix: str = "",
        extra: Extra = None,
        always: bool = False,
    ) -> None:
        from tqdm import tqdm

        shown = not quiet and (always or sys.stderr.isatty())
        is_watched = sys.stderr.isatty() or "ipykernel" in sys.modules  # a terminal or a notebook
        self._between = SECONDS_BETWEEN_DRAWS if is_watched else SECONDS_BETWEEN_LINES
        self._before = SECONDS_BEFORE if is_watched else SECONDS_BETWEEN_LINES
        self.note = ""  # stands at the end of the line
        self._prefix, self._extra = prefix, extra
        self.time_limit: float | None = None
        self._bar = tqdm(file=sys.stderr, disable=not shown, leave=False, delay=1e9, dynamic_ncols=True)
        self._newest, self._newest_time = Progress("starting", 0, None), 0.0
        self._first, self._first_time = self._newest, 0.0  # the first report that counts towards the same total
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._redraw, daemon=True) if shown else None

    def begin(self, stage: str) -> None:
        """Show a stage that cannot report how far it is."""
        self(Progress(stage, 0, None))

    def __call__(self, progress: Progress) -> None:
        """Remember the newest report; the thread draws it."""
        now = time.monotonic()
        if progress.total != self._first.total or progress.done < self._first.done:
            self._first, self._first_time = progress, now
        self._newest, self._newest_time = progress, now

    def __enter__(self) -> ProgressBar:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._bar.clear()  # close() does not erase a bar whose count is 0
        self._bar.close()

    def _redraw(self) -> None:
        stopped = self._stop.wait(self._before)
        while not stopped:
            self.draw()
            stopped = self._stop.wait(self._between)

    def draw(self) -> None:
        """Draw the newest report now."""
        progress = self._newest
        done, total = progress.done, progress.total
        counts = ""
        if total:
            done = min(max(done, 0), total)
            counts = f"{{bar:20}} {done:,.0f}/{total:,.0f}, " if total > 1 else f"{{bar:20}} {done:.0%}, "
        left = self._seconds_left(progress)
        notes = [] if left is None else [f"about {duration(left)} left"]
        if self._extra is not None and type(progress) is not Progress:
            notes.append(self._extra(progress))
        if self.note:
            notes.append(self.note)
        self._bar.bar_format = f"{{desc}} {counts}{{elapsed}}{{postfix}}"
        self._bar.n, self._bar.total = done, total
        self._bar.set_description_str(self._prefix + progress.stage, refresh=False)
        self._bar.set_postfix_str(", ".join(notes), refresh=False)
        self._bar.refresh()

    def _seconds_left(self, progress: Progress) -> float | None:
        """The caller's own estimate, or else one from the speed since the first report; None if nothing is known."""
        if hasattr(progress, "seconds_left"):
            left: float | None = progress.seconds_left
            return left
        advanced = progress.done - self._first.done
        if not progress.total or progress.total != self._first.total or advanced <= 0:
            return None
        speed = advanced / max(self._newest_time - self._first_time, 1e-9)
        now = time.monotonic()
        left = (progress.total - progress.done) / speed - (now - self._newest_time)
        if self.time_limit is not None:
            left = min(left, self.time_limit - (now - self._first_time))
        return max(left, 0.0)


@contextmanager
def watched(progress: ProgressCallback | None, verbose: Any) -> Iterator[ProgressCallback | None]:
    """The callback of a long computation: ``progress``, and a bar as well if ``verbose``.

    If kernels are compiled inside the block, the bar says so, and the log does once in each process.
    """
    if not isinstance(verbose, bool | int):
        raise ValueError(f"verbose must be True or False, got {verbose!r}")
    if not verbose:
        with compilations_told(progress):
            yield progress
        return
    with ProgressBar(False, always=True) as bar, compilations_told(bar):

        def both(told: Any) -> None:
            bar(told)
            if progress is not None:
                progress(told)

        yield both


@contextmanager
def compilations_told(progress: ProgressCallback | None) -> Iterator[Callable[[], float]]:
    """Tell of every compilation; numba announces those only whose result is not in its cache.

    Yields a function that returns the seconds they have taken so far.
    """
    from numba.core import event

    bar = progress if isinstance(progress, ProgressBar) else None

    class Compilations(event.Listener):
        depth = 0  # a kernel is compiled while one that calls it is
        since, seconds = 0.0, 0.0

        def on_start(self, told: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                self.since = time.perf_counter()
            _log_compilation()
            if bar is not None:
                bar.note = COMPILING

        def on_end(self, told: Any) -> None:
            self.depth -= 1
            if not self.depth:
                self.seconds += time.perf_counter() - self.since
                if bar is not None:
                    bar.note = ""

        def so_far(self) -> float:
            return self.seconds + (time.perf_counter() - self.since if self.depth else 0.0)

    listener = Compilations()
    with event.install_listener("numba:compile", listener):
        yield listener.so_far


@cache
def _log_compilation() -> None:
    log.info("%s; this takes some seconds", COMPILING)


def duration(seconds: float) -> str:
    """A rounded duration.

    >>> duration(42.4), duration(400.0), duration(20000.0)
    ('42 s', '7 min', '5.6 h')
    """
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"
