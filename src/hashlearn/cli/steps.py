"""A bar over the steps of a command, on standard error if that is a terminal; nothing at all in a pipe.

It appears after half a second, and its clock goes on while a step takes long and reports nothing.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from hashlearn.core.progress import Progress

SECONDS_BEFORE = 0.5
SECONDS_BETWEEN_DRAWS = 0.2
WITH_STEPS = "{desc} {bar:20} {n_fmt}/{total_fmt}, {elapsed}"
WITHOUT_STEPS = "{desc} {elapsed}"


class Steps:
    """A progress callback; ``steps.begin(what)`` where nothing can be counted."""

    def __init__(self, quiet: bool) -> None:
        from tqdm import tqdm

        shown = not quiet and sys.stderr.isatty()
        self._bar = tqdm(file=sys.stderr, disable=not shown, leave=False, delay=1e9, dynamic_ncols=True)
        self._began = time.monotonic()
        self._state: tuple[str, int, int] = ("", 0, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._redraw, daemon=True) if shown else None

    def begin(self, what: str) -> None:
        """From now on this is being done."""
        self._state = (what, 0, 0)

    def __call__(self, progress: Progress) -> None:
        """Show how far it is."""
        self._state = (progress.stage, int(progress.done), int(progress.total or 0))

    def __enter__(self) -> Steps:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._bar.clear()  # close() leaves the line where the bar never counted
        self._bar.close()

    def _redraw(self) -> None:
        if self._stop.wait(SECONDS_BEFORE):
            return
        while True:
            what, done, total = self._state
            self._bar.bar_format = WITH_STEPS if total else WITHOUT_STEPS
            self._bar.n, self._bar.total = done, total or None
            self._bar.set_description_str(what, refresh=False)
            self._bar.refresh()
            if self._stop.wait(SECONDS_BETWEEN_DRAWS):
                return
