"""What encoding costs on this machine, measured on made-up rows."""

from __future__ import annotations

import statistics
import timeit
import warnings
from typing import Any, NamedTuple

import numpy as np

BATCH_ROWS = 10_000
BATCH_BYTES = 2**26  # of made-up features; wide rows are fewer


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
        single = timeit.repeat(lambda: hasher.encode(rows[:1]), repeat=7, number=1)
        batch = timeit.repeat(lambda: hasher.encode(rows), repeat=3, number=1)
    return EncodeCost(1e3 * statistics.median(single), n_rows / statistics.median(batch), n_rows)
