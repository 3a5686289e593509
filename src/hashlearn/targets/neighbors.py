"""Neighbor-graph target: samples are near if a random walk over nearest neighbors leads from one to the other.

Large distances say little about classes; chains of small distances say much. The graph's diffusion is a low-rank
factor, so Y is an operator of rank ``n_components``. Hash functions extend the codes to new samples as usual.

Two samples of one class usually share many neighbors; an edge between classes is often a single coincidence. The weight
of an edge is therefore the number of common neighbors of its ends, plus one (Jarvis and Patrick 1973). O(n k²) time and
memory after the search for neighbors, which is approximate for many samples.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from hashlearn import bqp
from hashlearn.core import thresholds
from hashlearn.core.checks import whole_number
from hashlearn.core.memory import densified
from hashlearn.core.names import require_choice
from hashlearn.core.threads import one_blas_thread
from hashlearn.linalg.nearest import nearest_in_cells, nearest_rows
from hashlearn.linalg.principal_axes import GUARDS, leading_eigenvectors, with_fixed_signs
from hashlearn.targets.base import Target, centered_unit_rows

log = logging.getLogger(__name__)

METRICS = ("cosine", "euclidean")
MOST_DENSE = 400  # up to this many nodes all eigenvectors are computed
LARGEST_POWER = 256.0
AUTOMATIC_DIMENSIONS = (16.0, 32.0)
TOLERANCE = 1e-6  # of eigenvalues


@dataclass(frozen=True)
class Neighbors(Target):
    """Y = EEᵀ, E the rows of unit length of the leading eigenvectors U of the normalized graph, times eigenvalue^t.

    Parameters
    ----------
    n_neighbors : k of the graph
    n_components : number of eigenvectors
    dimension : t, the length of the walk, is such that eigenvalue^2t counts as this many equal ones (participation
        ratio); smaller is coarser: fewer, larger groups. "auto" is 2 · n_bits, from 16 to 32
    metric : between samples: "cosine" (rows brought to unit length, not centered) or "euclidean"

    The trivial eigenvector is projected out, so the parts of a graph that is not connected stay apart. Equal rows are
    one node. How the defaults were chosen: docs/quality.md.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:300]
    >>> Y = Neighbors().build(X, None, np.random.default_rng(0))
    >>> Y.n, Y.rank, bool(np.abs(Y.toarray()).max() < 1.0 + 1e-9)
    (300, 64, True)
    """

    n_neighbors: int = 7
    n_components: int = 64
    dimension: float | str = "auto"
    metric: str = "cosine"

    name: ClassVar[str] = "neighbors"

    def __post_init__(self) -> None:
        for name in ("n_neighbors", "n_components"):
            whole_number(getattr(self, name), name, least=1)
        if self.dimension != "auto" and not (
            isinstance(self.dimension, int | float | np.number) and 1.0 <= self.dimension < np.inf
        ):
            raise ValueError(f"dimension must be a number of at least 1, or 'auto', got {self.dimension!r}")
        require_choice(self.metric, "metric", METRICS)

    def for_bits(self, n_bits: int) -> Neighbors:
        if self.dimension != "auto":
            return self
        return replace(self, dimension=float(np.clip(2 * n_bits, *AUTOMATIC_DIMENSIONS)))

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        rows = self.embedding(X, rng)
        return bqp.LowRank(rows, np.ones(rows.shape[1]))

    def embedding(self, X: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """E, shape (n, n_components) or fewer columns if the graph is small; rows have unit length or are zero."""
        graph, place = neighbor_graph(X, int(self.n_neighbors), self.metric, rng)
        values, vectors = _diffusion(graph, int(self.n_components), rng)
        dimension = AUTOMATIC_DIMENSIONS[1] if isinstance(self.dimension, str) else self.dimension
        scaled = vectors * values ** _power(values, dimension)
        if scaled.shape[1] == 0:  # a single distinct row: no pair is known to be near or far
            return np.zeros((len(place), 1))
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        unit = np.divide(scaled, norms, out=np.zeros_like(scaled), where=norms > 1e-12 * norms.max(initial=0.0))
        return np.ascontiguousarray(unit[place])


def _diffusion(
    graph: sp.csr_array, n_components: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Largest eigenvalues of D^(-1/2) W D^(-1/2) and their vectors, the trivial one left out; negative values as 0."""
    n = graph.shape[0]
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    root = np.sqrt(degrees)
    inverse = np.divide(1.0, root, out=np.zeros(n), where=root > 0.0)
    trivial = root / max(float(np.linalg.norm(root)), 1e-300)
    if n <= MOST_DENSE or n_components >= n - GUARDS:
        dense = graph.toarray() * inverse[:, None] * inverse - np.outer(trivial, trivial)
        values, vectors = np.linalg.eigh(dense)
    else:
        scaled = sp.csr_array(graph.multiply(inverse[:, None]).multiply(inverse))
        if n > thresholds.MOST_EXACT_NEIGHBORS:
            values, vectors = leading_eigenvectors(scaled, n_components, trivial, rng)
            return np.clip(values, 0.0, 1.0), with_fixed_signs(vectors)

        def product(x: NDArray[Any]) -> NDArray[Any]:
            flat = x.ravel()
            result: NDArray[Any] = np.asarray(scaled @ flat) - trivial * float(trivial @ flat)
            return result

        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        try:
            with one_blas_thread():  # two threads took nine times as much processor time on busy cores
                values, vectors = eigsh(operator, n_components, which="LA", v0=rng.standard_normal(n), tol=TOLERANCE)
        except ArpackError as failure:
            log.warning("eigenvectors of the neighbor graph come from subspace iteration, because %s", failure)
            values, vectors = leading_eigenvectors(scaled, n_components, trivial, rng)
    order = np.argsort(values)[::-1][:n_components]
    values, vectors = np.clip(values[order], 0.0, 1.0), vectors[:, order]
    return values, with_fixed_signs(vectors)


def _power(values: NDArray[np.float64], dimension: float) -> float:
    """t for which eigenvalue^2t has the participation ratio ``dimension``, by bisection; at most `LARGEST_POWER`."""

    def ratio(power: float) -> float:
        weights = (values / max(float(values.max(initial=0.0)), 1e-300)) ** (2.0 * power)
        return float(weights.sum() ** 2 / np.square(weights).sum()) if weights.any() else 0.0

    low, high = 0.0, LARGEST_POWER
    if ratio(high) >= dimension:
        return high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if ratio(middle) > dimension else (low, middle)
    return 0.5 * (low + high)


def neighbor_graph(
    X: Any, n_neighbors: int, metric: str, rng: np.random.Generator
) -> tuple[sp.csr_array, NDArray[np.intp]]:
    """Symmetric weights between distinct rows of X, and the index of each row among these.

    Equal rows are one node: a thousand copies would otherwise be each other's only neighbors.
    """
    rows = centered_unit_rows(X, center=False) if metric == "cosine" else densified(X, "a graph of neighbors")
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    nodes, place = _distinct(rows)
    n = len(nodes)
    k = min(n_neighbors, n - 1)
    if k < 1:
        return sp.csr_array((n, n), dtype=np.float64), place
    rows = rows[nodes] if metric == "cosine" else rows[nodes] - rows.mean(axis=0)
    near = (
        nearest_in_cells(rows, k, rng)
        if n > thresholds.MOST_EXACT_NEIGHBORS
        else nearest_rows(rows, rows, k, np.arange(n))
    )
    starts = np.arange(0, n * k + 1, k)
    directed = sp.csr_array((np.ones(n * k), near.ravel(), starts), shape=(n, n))
    directed.sort_indices()
    weights = _shared_neighbors(directed)
    return sp.csr_array(weights.maximum(weights.T)), place


def _shared_neighbors(directed: sp.csr_array) -> sp.csr_array:
    """1 + the number of common neighbors, for each edge."""
    n, k = directed.shape[0], directed.indptr[1]
    lists = directed.indices.reshape(n, k)
    shared = np.empty((n, k))
    for first in range(0, n, 4096):
        block = lists[first : first + 4096]
        # Common entries of a row's list and the list of each of its neighbors: equal pairs among k × k.
        for column in range(k):
            others = lists[block[:, column]]
            shared[first : first + 4096, column] = (block[:, :, None] == others[:, None, :]).sum(axis=(1, 2))
    return sp.csr_array((1.0 + shared.ravel(), directed.indices, directed.indptr), shape=(n, n))


def _distinct(rows: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First index of every distinct row, in order of appearance, and the number of each row among these."""
    raw = (rows + np.float32(0.0)).view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()  # −0 becomes 0
    first, place = np.unique(raw, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return first[order], rank[place.ravel()]
