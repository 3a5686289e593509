"""Parts of A for a block of variables: its couplings as a small dense array, and the product (A x)_B."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hashlearn.bqp.operators import Dense, Operator, split
from hashlearn.core.arrays import FloatArray

IndexArray = NDArray[np.intp]


class Couplings:
    """Small parts of A as dense arrays, and (A x)_B for one block at a time. For low rank it updates t = Pᵀx."""

    def __init__(self, A: Operator) -> None:
        self.n = A.n
        self._A = A
        self._dense = A.array if isinstance(A, Dense) else None
        sparse, self._low_rank = split(A)
        self._sparse = None if sparse is None else sparse.matrix
        self._place = np.full(A.n if self._sparse is not None else 0, -1)

    def start(self, x: FloatArray) -> float:
        """Fresh sums for x, and its value."""
        if self._low_rank is not None:
            self._t = self._low_rank.P.T @ x
        return self._A.value(x)

    def not_repelling(self, window: IndexArray, size: int) -> IndexArray:
        """Places in ``window``: its first variable and then each that repels none of those taken before it."""
        friendly = _not_positive(self.part(window[:1], window)[0])
        friendly[0] = False
        candidates = np.concatenate([[0], np.flatnonzero(friendly)[: size - 1]])
        peaceful = _not_positive(self.part(window[candidates], window[candidates]))
        allowed = np.ones(len(candidates), dtype=bool)
        for k in range(1, len(candidates)):
            if allowed[k]:
                allowed[k + 1 :] &= peaceful[k, k + 1 :]
        return candidates[allowed]

    def part(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """A[rows][:, columns], dense."""
        out = np.zeros((len(rows), len(columns)))
        if self._dense is not None:
            out += self._dense[np.ix_(rows, columns)]
        if self._low_rank is not None:
            P = self._low_rank.P
            out += (P[rows] * self._low_rank.weights) @ P[columns].T
        if self._sparse is not None:
            # SciPy's column indexing costs O(n) each time; this costs what the rows hold.
            self._place[columns] = np.arange(len(columns))
            some = self._sparse[rows].tocoo()
            places = self._place[some.col]
            out[some.row[places >= 0], places[places >= 0]] += some.data[places >= 0]
            self._place[columns] = -1
        return out

    def field(self, index: IndexArray, x: FloatArray) -> FloatArray:
        """(A x)[index]."""
        out = np.zeros(len(index))
        if self._dense is not None:
            out += self._dense[index] @ x
        if self._low_rank is not None:
            out += self._low_rank.P[index] @ (self._low_rank.weights * self._t)
        if self._sparse is not None:
            out += self._sparse[index] @ x
        return out

    def moved(self, index: IndexArray, difference: FloatArray) -> None:
        """Tell that x[index] has grown by ``difference``."""
        if self._low_rank is not None:
            self._t += self._low_rank.P[index].T @ difference


def _not_positive(couplings: FloatArray) -> NDArray[np.bool_]:
    """Whether a_ij ≤ 0, up to rounding: a low-rank A rarely has exact zeros."""
    return couplings <= 1e-14 * np.abs(couplings).max()
