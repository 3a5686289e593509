"""Weighted graphs of the kinds in the Gset collection, made from a seed, for max-cut: symmetric, no self-loops.

Every function returns a ``scipy.sparse.csr_array`` of weights W. The largest cut has the smallest xᵀWx.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import Delaunay


def random_graph(n: int, degree: float, seed: int, signed: bool = False) -> sp.csr_array:
    """About n · degree / 2 distinct edges between random nodes, of weight 1, or ±1 if ``signed``."""
    rng = np.random.default_rng(seed)
    wanted = round(n * degree / 2)
    pairs = np.empty((0, 2), np.int64)
    while len(pairs) < wanted:
        more = np.sort(rng.integers(0, n, (wanted, 2)), axis=1)
        pairs = np.unique(np.concatenate([pairs, more[more[:, 0] < more[:, 1]]]), axis=0)
    pairs = rng.permutation(pairs)[:wanted]
    return _graph(n, pairs, _weights(len(pairs), signed, rng))


def toroidal_grid(rows: int, columns: int, seed: int) -> sp.csr_array:
    """A torus of rows × columns nodes with four neighbors each and weights ±1, as G11 and G32."""
    rng = np.random.default_rng(seed)
    r, c = np.divmod(np.arange(rows * columns), columns)
    right = r * columns + (c + 1) % columns
    down = (r + 1) % rows * columns + c
    nodes = np.arange(rows * columns)
    pairs = np.concatenate([np.column_stack([nodes, right]), np.column_stack([nodes, down])])
    return _graph(rows * columns, pairs, _weights(len(pairs), True, rng))


def regular_graph(n: int, seed: int, degree: int = 3) -> sp.csr_array:
    """A random graph in which every node has ``degree`` distinct neighbors, weight 1."""
    rng = np.random.default_rng(seed)
    ends = rng.permutation(np.repeat(np.arange(n), degree)).reshape(-1, 2)
    while True:
        low, high = ends.min(axis=1), ends.max(axis=1)
        _, first = np.unique(low * n + high, return_index=True)
        bad = np.setdiff1d(np.arange(len(ends)), first)  # all but the first of parallel edges
        bad = np.union1d(bad, np.flatnonzero(low == high))
        if not len(bad):
            return _graph(n, ends, np.ones(len(ends)))
        # Each bad edge exchanges an end with a random edge.
        for edge, other in zip(bad, rng.integers(0, len(ends), len(bad)), strict=True):
            ends[edge, 1], ends[other, 1] = ends[other, 1], ends[edge, 1]


def planar_union(n: int, seed: int, signed: bool = False) -> sp.csr_array:
    """The union of two random planar graphs with nearly all edges that fit, as G14 and G51."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(2):
        corners = Delaunay(rng.random((n, 2))).simplices
        sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
        edges = np.unique(np.sort(rng.permutation(n)[sides], axis=1), axis=0)
        pairs.append(edges[rng.random(len(edges)) < 0.99])
    union = np.unique(np.concatenate(pairs), axis=0)
    return _graph(n, union, _weights(len(union), signed, rng))


def square_torus(n: int, seed: int) -> sp.csr_array:
    """`toroidal_grid` with about n nodes, as square as n allows."""
    rows = next(r for r in range(int(np.sqrt(n)), 0, -1) if n % r == 0)
    return toroidal_grid(rows, n // rows, seed)


# The kinds that tables use: name → graph of n nodes.
KINDS: dict[str, Callable[[int, int], sp.csr_array]] = {
    "random": lambda n, seed: random_graph(n, min(0.06 * n, 20.0), seed),
    "random ±1": lambda n, seed: random_graph(n, min(0.06 * n, 20.0), seed, signed=True),
    "torus ±1": square_torus,
    "planar union": planar_union,
    "3-regular": lambda n, seed: regular_graph(n + n % 2, seed),
}


def cut(W: sp.csr_array, x: NDArray[np.int8]) -> float:
    """The weight of the edges between the two sides."""
    x = np.asarray(x, np.float64)
    return float((W.sum() - x @ (W @ x)) / 4.0)


def _weights(count: int, signed: bool, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.where(rng.random(count) < 0.5, -1.0, 1.0) if signed else np.ones(count)


def _graph(n: int, pairs: NDArray[np.int64], weights: NDArray[np.float64]) -> sp.csr_array:
    half = sp.coo_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(n, n)).tocsr()
    return sp.csr_array(half + half.T)
