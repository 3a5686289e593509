"""A toy target: inner products of centered rows of unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hashlearn import bqp
from hashlearn.targets.base import Target, centered_unit_rows


@dataclass(frozen=True)
class ToyTarget(Target):
    """Y = XXᵀ for centered rows of unit length."""

    name: ClassVar[str] = "toy_target"

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        rows = centered_unit_rows(X, True)
        return bqp.LowRank(rows, np.ones(rows.shape[1]))
