"""Example problems for ``hashlearn demo --solvers`` and tests: one bit of a code, and a random graph to cut.

`digits_bit` is eq. (5) for the first bit of a code on scikit-learn's 1,797 handwritten digits, in its exact
low-rank form. `random_graph` is a max-cut problem. Both are built in less than a second, without a download.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from hashlearn.bqp.operators import LowRank, Sparse
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator

SWAPS_PER_EDGE = 10


def digits_bit(supervised: bool, n_bits: int = 16) -> LowRank:
    """The problem (5) of the first bit for scikit-learn's digits, all other bits held at their PCA start.

    The rows X are centered, then scaled to unit norm; the start codes Z are the signs of their first
    ``n_bits`` principal components. With Z̄ = Z without its first bit, C the one-hot labels, L = ``n_bits``:

    - unsupervised: A = Z̄Z̄ᵀ − L·XXᵀ, the target of squared Euclidean distances;
    - supervised: A = Z̄Z̄ᵀ + L·11ᵀ − 2L·CCᵀ, the target of the labels.

    Every diagonal entry is −1 in both.

    >>> A = digits_bit(supervised=True)
    >>> A.n, A.rank
    (1797, 26)
    >>> bool(np.allclose(A.diagonal(), -1.0))
    True
    """
    from sklearn.datasets import load_digits

    if not 2 <= n_bits <= 61:
        raise ValueError(f"n_bits must be from 2 to 61, the digits' number of varying pixels, got {n_bits}")
    features, labels = load_digits(return_X_y=True)
    X = features - features.mean(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    others = _pca_codes(X, n_bits)[:, 1:]
    ones = np.ones(n_bits - 1)
    if not supervised:
        return LowRank(np.hstack([others, X]), np.concatenate([ones, np.full(X.shape[1], -float(n_bits))]))
    one_hot = (labels[:, None] == np.unique(labels)).astype(np.float64)
    weights = np.concatenate([ones, [n_bits], np.full(one_hot.shape[1], -2.0 * n_bits)])
    return LowRank(np.hstack([others, np.ones((len(X), 1)), one_hot]), weights)


def random_graph(n: int, degree: int, rng: Any = None) -> Sparse:
    """The adjacency matrix of a random graph on n nodes, each with ``degree`` neighbors: a max-cut problem.

    A ring of near neighbors is shuffled by exchanging the ends of random pairs of edges. The edges that a
    partition x cuts are m / 2 − xᵀAx / 4 of all m = n · degree / 2.

    >>> A = random_graph(10, 3, rng=0)
    >>> A.matrix.sum(axis=1)
    array([3., 3., 3., 3., 3., 3., 3., 3., 3., 3.])

    Parameters
    ----------
    n : number of nodes
    degree : neighbors of each node, less than n; n · degree must be even
    rng : None, an integer seed or a numpy Generator
    """
    if not 1 <= degree < n or n * degree % 2:
        raise ValueError(f"degree must be from 1 to n - 1 with n * degree even, got n={n}, degree={degree}")
    edges = _shuffled(_ring(n, degree), generator(rng))
    i, j = np.array(edges).T
    matrix = sp.coo_array((np.ones(2 * len(i)), (np.append(i, j), np.append(j, i))), shape=(n, n))
    return Sparse(matrix)


def _pca_codes(X: FloatArray, n_bits: int) -> FloatArray:
    """Signs of the first principal components, each thresholded at its mean (their own signs cancel in A)."""
    centered = X - X.mean(axis=0)
    _, _, components = np.linalg.svd(centered, full_matrices=False)
    return np.where(centered @ components[:n_bits].T >= 0.0, 1.0, -1.0)


def _ring(n: int, degree: int) -> list[tuple[int, int]]:
    """Neighbours at distance 1, 2, … on a ring, and the opposite node if ``degree`` is odd."""
    edges = [(i, (i + step) % n) for step in range(1, degree // 2 + 1) for i in range(n)]
    if degree % 2:
        edges += [(i, i + n // 2) for i in range(n // 2)]
    return edges


def _shuffled(edges: list[tuple[int, int]], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Replace pairs of edges a–b, c–d by a–d, c–b if that makes no loop and no double edge."""
    present = {frozenset(edge) for edge in edges}
    for p, q, crossed in rng.integers(len(edges), size=(SWAPS_PER_EDGE * len(edges), 3)).tolist():
        (a, b), (c, d) = edges[p], edges[q]
        if crossed % 2:
            c, d = d, c
        made = {frozenset((a, d)), frozenset((c, b))}
        if a == d or c == b or len(made) < 2 or not present.isdisjoint(made):
            continue
        present -= {frozenset((a, b)), frozenset((c, d))}
        present |= made
        edges[p], edges[q] = (a, d), (c, b)
    return edges
