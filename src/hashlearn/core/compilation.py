"""How long Numba has compiled kernels, which time limits leave out: the first call on a machine takes seconds more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def compilation_clock() -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds of compilation so far; loads from the cache are not counted."""
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
