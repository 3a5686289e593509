"""The one shape of progress callback: it is called with a `Progress`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Progress:
    """How far a long computation has come. Some callers are told more: see the subclasses.

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
