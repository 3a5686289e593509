"""1-flip descent of many sign vectors at once: until no single flip helps any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hashlearn.bqp.operators import LowRank, Operator
from hashlearn.bqp.rows.interface import TallArray
from hashlearn.bqp.sweeps import CoordinateSweeps
from hashlearn.core.threads import map_threads

MAX_PASSES = 1000


def polish_all(A: Operator, X: TallArray, between: Callable[[], Any], max_passes: int = MAX_PASSES) -> TallArray:
    """Every column of X (n × draws, signs) at a 1-flip local optimum, or near it after ``max_passes``; none worse."""
    if isinstance(A, LowRank):
        return A.rows.flip_descent(A.weights, X, between, max_passes)
    sweeps = CoordinateSweeps(A)
    columns = map_threads(lambda q: sweeps.descend(X[:, q], max_passes, between=between), range(X.shape[1]))
    return np.column_stack(list(columns))
