"""One bit of one block: signs that lower xᵀAx as far as this block's rows can see, from products that all blocks share.

The rows of P = [Z, F] are made from codes and the float32 factor one at a time, and never kept. A block flips single
signs while its flips count ``echo`` times in t = Pᵀx, as if every other block did the same: blocks that resemble each
other then do not all mend the same fault. With one block the echo is 1, and this is the ordinary 1-flip descent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.distributed.block_cache import Kept

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
    fields = np.ascontiguousarray((step.weights[:, None] * start).T)
    _descend(bits, factor, step.weights, fields, X, X.copy(), step.echo, MOST_SWEEPS, SETTLED)
    changes, products = _products(bits, factor, X, present)
    columns = [X[:, c] > 0 for c in range(X.shape[1])]
    kept.pending = (step.bit, columns)
    return Proposal(
        changes[0].copy(),
        products[1].copy() if step.candidate is not None else None,
        [np.packbits(column) for column in columns],
        [int(np.count_nonzero(column != (present > 0))) for column in columns],
    )


# Sums may be regrouped, so that they are vectorised; the compiled order is fixed, and the same in every process.
FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def _fill(bits, factor, i, row):  # type: ignore[no-untyped-def]
    n_bits, rank = bits.shape[1], factor.shape[1]
    for j in range(n_bits):
        row[j] = 2.0 * bits[i, j] - 1.0
    for j in range(rank):
        row[n_bits + j] = factor[i, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def _dot(row, vector):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * vector[j]
    return total


@njit(cache=True, nogil=True, fastmath=FAST)
def _square(row, weights):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(row.shape[0]):
        total += row[j] * row[j] * weights[j]
    return total


@njit(cache=True, nogil=True)
def _signs(bits, factor, q):  # type: ignore[no-untyped-def]
    n = bits.shape[0]
    row = np.empty(q.shape[0])
    signs = np.empty(n, np.int8)
    for i in range(n):
        _fill(bits, factor, i, row)
        signs[i] = -1 if _dot(row, q) < 0.0 else 1
    return signs


@njit(cache=True, nogil=True)
def _descend(bits, factor, weights, fields, X, origins, echo, most_sweeps, settled):  # type: ignore[no-untyped-def]
    """Single flips of every column of X, in place; ``fields`` are the rows W Pᵀx, with the flips of this block counted
    ``echo`` times."""
    n, columns = X.shape
    rank = weights.shape[0]
    row = np.empty(rank)
    for _ in range(most_sweeps):
        flips = 0
        for i in range(n):
            _fill(bits, factor, i, row)
            diagonal = _square(row, weights)
            for c in range(columns):
                x, origin = float(X[i, c]), float(origins[i, c])
                pull = _dot(row, fields[c])
                force = pull - diagonal * (origin + echo * (x - origin))
                if x * force <= 1e-12 * (abs(pull) + abs(force)):
                    continue
                flips += 1
                X[i, c] = -X[i, c]
                step = -2.0 * x * echo
                for j in range(rank):
                    fields[c, j] += step * weights[j] * row[j]
        if flips <= settled * n * columns:
            break


@njit(cache=True, nogil=True)
def _products(bits, factor, X, present):  # type: ignore[no-untyped-def]
    """Rows Pᵀ(x − present) and Pᵀx, for every column x of X; of the first column, the former alone."""
    n, columns = X.shape
    rank = bits.shape[1] + factor.shape[1]
    row = np.empty(rank)
    changes, products = np.zeros((columns, rank)), np.zeros((columns, rank))
    for i in range(n):
        if columns == 1 and X[i, 0] == present[i]:
            continue
        _fill(bits, factor, i, row)
        for c in range(columns):
            x, moved = float(X[i, c]), float(X[i, c]) - float(present[i])
            if moved != 0.0:
                for j in range(rank):
                    changes[c, j] += moved * row[j]
            if c > 0:
                for j in range(rank):
                    products[c, j] += x * row[j]
    return changes, products
