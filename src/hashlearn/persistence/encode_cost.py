"""What encoding costs on this machine, measured on made-up rows."""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

BATCH_ROWS = 10_000
BATCH_BYTES = 2**26  # of made-up features; wide rows are fewer
SINGLE_ROWS = 7  # timed one by one
SECONDS = 0.5  # repeat the batch for about this long


class EncodeCost(NamedTuple):
    """Wall time of `encode`: medians."""

    ms_per_row: float  # of a call with one row
    rows_per_second: float  # of a call with ``batch_rows`` rows
    batch_rows: int


def encode_cost(hasher: Any) -> EncodeCost:
    """Measure how long a fitted hasher takes for one row, and for a batch of up to 10,000.

    >>> from hashlearn.hashers import LSH
    >>> cost = encode_cost(LSH(n_bits=8, random_state=0).fit([[0.0, 1.0], [1.0, 0.0]]))
    >>> cost.ms_per_row > 0.0, cost.rows_per_second > 0.0, cost.batch_rows
    (True, True, 10000)
    """
    n_features = int(hasher.n_features_in_)
    n_rows = max(1, min(BATCH_ROWS, BATCH_BYTES // (8 * n_features)))
    rows = np.random.default_rng(0).random((n_rows, n_features))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        hasher.encode(rows[:1])  # compiles what is compiled at the first call
        single = [_seconds(hasher, rows[place : place + 1]) for place in range(min(SINGLE_ROWS, n_rows))]
        batch = [_seconds(hasher, rows)]
        while sum(batch) < SECONDS and len(batch) < SINGLE_ROWS:
            batch.append(_seconds(hasher, rows))
    return EncodeCost(1e3 * statistics.median(single), n_rows / statistics.median(batch), n_rows)


def _seconds(hasher: Any, rows: Any) -> float:
    began = time.perf_counter()
    hasher.encode(rows)
    return max(time.perf_counter() - began, 1e-9)
