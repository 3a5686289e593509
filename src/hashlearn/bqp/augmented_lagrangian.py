"""Placeholder while this file is being written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hashlearn.bqp.solution import Status


@dataclass(frozen=True)
class AugmentedLagrangian:
    name: ClassVar[str] = "al"

    def run(self, A: Any, run: Any, rng: Any, x0: Any) -> Status:
        raise NotImplementedError
