"""Samples of one label set and one code so far, as one variable: the inference problems of FastHash, exactly.

The coupling of two groups is that of two samples times the number of such pairs. Couplings are computed when they are
used, in blocks of rows; at most max_groups² are in memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import map_row_blocks, one_blas_thread

IndexArray = NDArray[np.intp]


class Groups:
    """A partition of the samples that is refined with every bit."""

    def __init__(self, indicators: FloatArray, max_groups: int) -> None:
        self.max_groups = max_groups
        _, first, kinds = np.unique(indicators, axis=0, return_index=True, return_inverse=True)
        self.label_sets = indicators[first].astype(np.float32)
        self.n_bits = 0
        self._bits = np.empty((len(indicators), 0), dtype=np.int8)
        self._kinds = kinds.ravel()
        self._partition(self._kinds)

    def append(self, bit: NDArray[np.int8]) -> None:
        """Add a bit to the code of every sample."""
        self._bits = np.column_stack([self._bits, bit])
        self.n_bits += 1
        self._partition(2 * self.member + (bit > 0))

    def codes(self) -> NDArray[np.int8]:
        """All bits, ±1 (n, n_bits)."""
        return self._bits

    def draw(self, rng: np.random.Generator) -> IndexArray:
        """All groups, or ``max_groups`` of them, larger ones more likely."""
        n = len(self.counts)
        if n <= self.max_groups:
            return np.arange(n)
        return np.sort(rng.choice(n, self.max_groups, replace=False, p=self.counts / self.counts.sum()))

    def blocks(self, chosen: IndexArray) -> NDArray[np.int64]:
        """The label set of each chosen group; groups of one label set are cut together."""
        return self.kinds[chosen].astype(np.int64)

    def problem(self, chosen: IndexArray) -> bqp.Dense:
        """A with xᵀAx = what the next bit x of the chosen groups adds to the loss, up to a constant and a factor."""
        sizes = self.counts[chosen] / self.counts[chosen].mean()
        with one_blas_thread():
            A = self._couplings(chosen, chosen)
        A *= sizes[:, None]
        A *= sizes
        np.fill_diagonal(A, 0.0)
        return bqp.Dense.unchecked(A)

    def complete(self, chosen: IndexArray, x: FloatArray) -> tuple[NDArray[np.int8], FloatArray]:
        """The next bit of every sample, and what the wrong sign would cost.

        Chosen groups have x; any other group gets its best sign given the chosen ones.
        """
        weighted = self.counts[chosen] * x

        def field(first: int, last: int) -> FloatArray:
            return self._couplings(np.arange(first, last), chosen) @ weighted

        with one_blas_thread():
            fields = np.concatenate(map_row_blocks(field, len(self.counts), len(chosen)))
        signs = np.where(fields > 0.0, -1.0, 1.0)
        signs[chosen] = x
        own = np.zeros(len(self.counts))
        own[chosen] = -1.0  # the coupling of a sample with itself does not depend on its sign
        costs = np.maximum(own - signs * fields, 0.0)
        return signs[self.member].astype(np.int8), costs[self.member]

    def mean_loss(self, rng: np.random.Generator) -> float:
        """Mean over pairs of samples (of drawn groups, where there are many) of the loss, divided by n_bits²."""
        chosen = self.draw(rng)
        sizes = self.counts[chosen] / self.counts[chosen].sum()

        def part(first: int, last: int) -> float:
            rows = chosen[first:last]
            distance = self._distances(rows, chosen)
            loss = np.where(
                self._similar(rows, chosen), distance**2, np.maximum(0.5 * self.n_bits - distance, 0.0) ** 2
            )
            return float(sizes[first:last] @ (loss @ sizes))

        with one_blas_thread():
            return sum(map_row_blocks(part, len(chosen), len(chosen))) / self.n_bits**2

    def _partition(self, keys: NDArray[np.intp]) -> None:
        _, self.first, self.member, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        self.counts = counts.astype(np.float64)
        self.kinds = self._kinds[self.first]

    def _couplings(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Loss with equal minus loss with different bits: ≤ 0 for similar pairs, ≥ 0 for the others."""
        distance = self._distances(rows, columns)
        short = 0.5 * (self.n_bits + 1) - distance
        apart = np.maximum(short, 0.0) ** 2 - np.maximum(short - 1.0, 0.0) ** 2
        return np.where(self._similar(rows, columns), -(2.0 * distance + 1.0), apart)

    def _distances(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        left, right = (self._bits[self.first[index]].astype(np.float32) for index in (rows, columns))
        return 0.5 * (self.n_bits - (left @ right.T).astype(np.float64))

    def _similar(self, rows: IndexArray, columns: IndexArray) -> NDArray[np.bool_]:
        return self.label_sets[self.kinds[rows]] @ self.label_sets[self.kinds[columns]].T > 0.0
