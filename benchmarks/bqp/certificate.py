"""The benchmark's own certificate, independent of hashlearn's, by which every peer is judged alike.

For any d > 0 and c = max(0, −λ_min(D^{-½} A D^{-½})), −c·Σd is a lower bound on the relaxation (10) and so on
eq. (5). The eigenvalue is that of a rank × rank matrix, O(n rank²). It is exact up to rounding, which is not
bounded here: the gaps that are compared are 1e-6.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from hashlearn.bqp import Structured

FloatArray = NDArray[np.float64]
# Entries of d below this fraction of their mean are raised to it: a bound for any d > 0 stays a bound.
SMALLEST = 1e-6


def certified_bound(A: Structured, d: FloatArray) -> float:
    """The lower bound that the dual point d proves; A + Diag(d) need not be exactly semidefinite."""
    d = np.maximum(d, SMALLEST * np.abs(d).mean())
    Q = A.P / np.sqrt(d)[:, None]
    if A.rank < A.n:
        values, vectors = la.eigh(Q.T @ Q)
        R = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        Q = R
    M = (Q * A.weights) @ Q.T
    c = max(0.0, -float(la.eigh(M, eigvals_only=True, subset_by_index=[0, 0])[0]))
    return -c * float(d.sum())


def certified_gap(value: float, bound: float) -> float:
    """(value − bound) / |bound|; negative where a solver's point is not quite feasible."""
    return (value - bound) / abs(bound)
