"""Neighbor-graph target: samples are near if a random walk over nearest neighbors leads from one to the other.

Large distances say little about classes; chains of small distances say much. The graph's diffusion is a low-rank
factor, so Y is an operator of rank ``n_components``. Hash functions extend the codes to new samples as usual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from hashlearn import bqp
from hashlearn.core.checks import whole_number
from hashlearn.linalg.principal_axes import with_fixed_signs
from hashlearn.targets.base import Target
from hashlearn.targets.neighbor_graph import neighbor_graph

METRICS = ("cosine", "euclidean")
MOST_DENSE = 400  # up to this many nodes all eigenvectors are computed
LARGEST_POWER = 256.0
AUTOMATIC_DIMENSIONS = (16.0, 32.0)


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
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {self.metric!r}")

    def for_bits(self, n_bits: int) -> Neighbors:
        if self.dimension != "auto":
            return self
        return replace(self, dimension=float(np.clip(2 * n_bits, *AUTOMATIC_DIMENSIONS)))

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        rows = self.embedding(X, rng)
        return bqp.LowRank(rows, np.ones(rows.shape[1]))

    def embedding(self, X: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        """E, shape (n, n_components) or fewer columns if the graph is small; rows have unit length or are zero."""
        graph, place = neighbor_graph(X, int(self.n_neighbors), self.metric)
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
    if n <= MOST_DENSE or n_components >= n - 1:
        dense = graph.toarray() * inverse[:, None] * inverse - np.outer(trivial, trivial)
        values, vectors = np.linalg.eigh(dense)
    else:
        scaled = sp.csr_array(graph.multiply(inverse[:, None]).multiply(inverse))

        def product(x: NDArray[Any]) -> NDArray[Any]:
            flat = x.ravel()
            result: NDArray[Any] = np.asarray(scaled @ flat) - trivial * float(trivial @ flat)
            return result

        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        values, vectors = eigsh(operator, n_components, which="LA", v0=rng.standard_normal(n), tol=1e-6)
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
