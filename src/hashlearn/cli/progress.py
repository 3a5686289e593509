"""A bar on standard error while a solver runs; nothing where standard error is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from hashlearn.cli.text_tables import ABSENT, number

if TYPE_CHECKING:
    from hashlearn.bqp import SolverProgress

SECONDS_BETWEEN_DRAWS = 0.1
STEPS = 100
WITH_FRACTION = "{desc} {bar:20} {elapsed}{postfix}"
WITHOUT_FRACTION = "{desc} {elapsed}{postfix}"


class Bar:
    """Shows the stage, the value and the bound of each `SolverProgress` it is called with.

    ``value`` and ``bound`` translate into the numbers to show (a cut instead of xᵀAx), ``prefix`` says what
    is being solved. A method that cannot tell how far it is gets a bar from the ``time_limit``, if there is
    one, and else none.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        prefix: str = "",
        time_limit: float | None = None,
        value: Callable[[float], float] = float,
        bound: Callable[[float], float] = float,
    ) -> None:
        from tqdm import tqdm

        self.prefix = prefix
        self.time_limit = time_limit
        self._value, self._bound = value, bound
        self._drawn = -float("inf")
        self._bar = tqdm(
            total=STEPS,
            desc=prefix or "starting",
            file=sys.stderr,
            disable=True if quiet else None,
            leave=False,
            bar_format=WITHOUT_FRACTION,
            dynamic_ncols=True,
        )

    def __call__(self, progress: SolverProgress) -> None:
        """Redraw, if the last drawing is old enough to be worth it."""
        now = time.monotonic()
        if self._bar.disable or now - self._drawn < SECONDS_BETWEEN_DRAWS:
            return
        self._drawn = now
        fraction = progress.fraction
        if fraction is None and self.time_limit is not None:
            fraction = progress.seconds / self.time_limit
        self._bar.bar_format = WITHOUT_FRACTION if fraction is None else WITH_FRACTION
        self._bar.n = round(STEPS * min(max(fraction or 0.0, 0.0), 1.0))
        bound = number(self._bound(progress.bound), 6) if progress.bound > -float("inf") else ABSENT
        self._bar.set_description_str(f"{self.prefix}{progress.stage}", refresh=False)
        self._bar.set_postfix_str(f"value {number(self._value(progress.value), 6)}, bound {bound}", refresh=False)
        self._bar.refresh()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
