"""One bit of one block: signs that lower xᵀAx as far as this block's rows can see, from products that all blocks share.

The rows of P = [Z, F] are made from packed codes and the float32 factor a panel at a time. A block flips single signs
while its flips count ``echo`` times in t = Pᵀx, as if every other block did the same: blocks that resemble each other
then do not all mend the same fault twice over. With one block the echo is 1, and this is the ordinary 1-flip descent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.bqp.operators import FloatArray
from hashlearn.distributed.kept import Kept

PANEL_ROWS = 64
MOST_SWEEPS = 4
SETTLED = 2e-3  # the share of rows that still flip at which a block's sweeps end


class Proposal(NamedTuple):
    """What travels back from a block."""

    change: FloatArray  # Pᵀ(x − x₀) of the polished present bit
    products: FloatArray | None  # Pᵀx of the polished candidate
    columns: list[NDArray[np.uint8]]  # packed along the rows: the polished bit, then the candidate
    changed: list[int]  # signs that differ from the present bit


class Step(NamedTuple):
    """What every block is told about a bit."""

    bit: int
    n_bits: int
    weights: FloatArray  # of the columns of [Z, F]; 0 for the bit itself
    products: FloatArray  # Pᵀx of the present bit, over all blocks
    candidate: FloatArray | None  # q: the candidate's signs are those of P q
    candidate_products: FloatArray | None  # an estimate of its Pᵀx
    echo: float


def propose(kept: Kept, step: Step) -> Proposal:
    """Polish the present bit of a block, and the candidate where there is one."""
    assert kept.codes is not None
    bits = np.unpackbits(kept.codes, axis=1, count=step.n_bits)
    factor = kept.factor()
    present = bits[:, step.bit].astype(np.int8) * np.int8(2) - np.int8(1)
    start, origins = step.products[:, None], present[:, None]
    if step.candidate is not None:
        assert step.candidate_products is not None
        start = np.column_stack([start, step.candidate_products])
        origins = np.column_stack([origins, _signs(bits, factor, step.candidate)])
    X = np.array(origins, order="C")
    _descend(bits, factor, step.weights, np.array(start, order="C"), X, X.copy(), step.echo, MOST_SWEEPS, SETTLED)
    changes, products = _products(bits, factor, X, present)
    columns = [X[:, c] > 0 for c in range(X.shape[1])]
    kept.pending = (step.bit, columns)
    return Proposal(
        changes[:, 0].copy(),
        products[:, 1].copy() if step.candidate is not None else None,
        [np.packbits(column) for column in columns],
        [int(np.count_nonzero(column != (present > 0))) for column in columns],
    )


@njit(cache=True, nogil=True)
def _fill(bits, factor, first, rows, panel):  # type: ignore[no-untyped-def]
    n_bits, rank = bits.shape[1], factor.shape[1]
    for i in range(rows):
        for j in range(n_bits):
            panel[i, j] = 2.0 * bits[first + i, j] - 1.0
        for j in range(rank):
            panel[i, n_bits + j] = factor[first + i, j]


@njit(cache=True, nogil=True)
def _signs(bits, factor, q):  # type: ignore[no-untyped-def]
    n = bits.shape[0]
    panel = np.empty((PANEL_ROWS, len(q)))
    signs = np.empty(n, np.int8)
    for first in range(0, n, PANEL_ROWS):
        rows = min(PANEL_ROWS, n - first)
        _fill(bits, factor, first, rows, panel)
        margins = np.dot(panel, q)
        for i in range(rows):
            signs[first + i] = -1 if margins[i] < 0.0 else 1
    return signs


@njit(cache=True, nogil=True)
def _descend(bits, factor, weights, T, X, origins, echo, most_sweeps, settled):  # type: ignore[no-untyped-def]
    """Single flips of every column of X, in place. T follows, with the flips of this block counted ``echo`` times."""
    n, columns = X.shape
    rank = T.shape[0]
    panel = np.empty((PANEL_ROWS, rank))
    weighted = np.empty((PANEL_ROWS, rank))
    diagonal = np.empty(PANEL_ROWS)
    for _ in range(most_sweeps):
        flips = 0
        for first in range(0, n, PANEL_ROWS):
            rows = min(PANEL_ROWS, n - first)
            _fill(bits, factor, first, rows, panel)
            for i in range(rows):
                own = 0.0
                for j in range(rank):
                    weighted[i, j] = weights[j] * panel[i, j]
                    own += weighted[i, j] * panel[i, j]
                diagonal[i] = own
            pull = np.dot(weighted, T)
            for i in range(rows):
                for c in range(columns):
                    x, origin = float(X[first + i, c]), float(origins[first + i, c])
                    force = pull[i, c] - diagonal[i] * (origin + echo * (x - origin))
                    if x * force <= 1e-12 * (abs(pull[i, c]) + abs(force)):
                        continue
                    flips += 1
                    X[first + i, c] = -X[first + i, c]
                    step = -2.0 * x * echo
                    for j in range(rank):
                        T[j, c] += step * panel[i, j]
                    for later in range(i + 1, rows):
                        among = 0.0
                        for j in range(rank):
                            among += weighted[later, j] * panel[i, j]
                        pull[later, c] += step * among
        if flips <= settled * n * columns:
            break


@njit(cache=True, nogil=True)
def _products(bits, factor, X, present):  # type: ignore[no-untyped-def]
    """Pᵀ(X − present) and PᵀX."""
    n, columns = X.shape
    rank = bits.shape[1] + factor.shape[1]
    panel = np.zeros((PANEL_ROWS, rank))
    signs = np.zeros((PANEL_ROWS, columns))
    moved = np.zeros((PANEL_ROWS, columns))
    changes, products = np.zeros((rank, columns)), np.zeros((rank, columns))
    for first in range(0, n, PANEL_ROWS):
        rows = min(PANEL_ROWS, n - first)
        if rows < PANEL_ROWS:
            signs[:], moved[:] = 0.0, 0.0
        _fill(bits, factor, first, rows, panel)
        for i in range(rows):
            for c in range(columns):
                signs[i, c] = X[first + i, c]
                moved[i, c] = signs[i, c] - present[first + i]
        products += np.dot(panel.T, signs)
        changes += np.dot(panel.T, moved)
    return changes, products
