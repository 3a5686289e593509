"""Some rows of all blocks, drawn by seed: what small problems at the client are solved on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.distributed.block_cache import BlockState
from hashlearn.distributed.blocks import Table


def drawn(table: Table, count: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """For every block the rows drawn from it, ascending; all of them where there are no more than ``count``."""
    n = table.n
    rows = np.arange(n) if n <= count else np.sort(rng.choice(n, count, replace=False))
    return [rows[np.searchsorted(rows, a) : np.searchsorted(rows, b)] - a for a, b in table.edges()]


def taken_rows(rows: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    """Of a block's features."""
    return rows[index]


def taken_factor(state: BlockState, index: NDArray[np.intp]) -> NDArray[np.float32]:
    """Of a block's factor."""
    return state.factor()[index]


def bits_of(codes: NDArray[np.uint8], index: NDArray[np.intp], n_bits: int) -> NDArray[np.uint8]:
    """0/1 bits of some packed codes."""
    return np.unpackbits(codes[index], axis=1, count=n_bits)
