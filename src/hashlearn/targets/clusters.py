"""Cluster target: a class for each cluster of the neighbor graph, for codes of few bits.

With 8 balanced bits, 14 % of all samples lie within 2 bits of any code, for any choice of bits. With fewer codes, at
least 3 bits apart, only samples of one cluster lie there. Precision within a radius becomes much higher; the order of
samples farther away becomes coarser (docs/quality.md).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from hashlearn import bqp
from hashlearn.core.threads import one_blas_thread
from hashlearn.targets.base import Target
from hashlearn.targets.labels import Labels
from hashlearn.targets.neighbors import Neighbors

MOST_AUTOMATIC = 64
STARTS = 4  # of k-means; the best one is used


@dataclass(frozen=True)
class Clusters(Target):
    """Y of `Labels`, with the clusters of k-means on the neighbor graph's embedding as classes; y is not used.

    Parameters
    ----------
    n_clusters : "auto" is 2^(n_bits / 2), at most 64, because that many codes can be 3 or more bits apart
    neighbors : the graph, and its embedding

    ``KernelRidge(sharpen=4.0)`` suits it: it moves new samples to the codes of clusters.

    >>> from sklearn.datasets import load_digits
    >>> X = load_digits().data[:300]
    >>> Y = Clusters(n_clusters=10).build(X, None, np.random.default_rng(0))
    >>> Y.n, Y.rank
    (300, 11)
    """

    n_clusters: int | str = "auto"
    neighbors: Neighbors = Neighbors()  # noqa: RUF009  (frozen)

    name: ClassVar[str] = "clusters"

    def __post_init__(self) -> None:
        count = self.n_clusters
        if count != "auto" and (isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 2):
            raise ValueError(f"n_clusters must be an integer of at least 2, or 'auto', got {count!r}")
        if not isinstance(self.neighbors, Neighbors):
            raise TypeError(f"neighbors must be a Neighbors target, got {type(self.neighbors).__name__}")

    def for_bits(self, n_bits: int) -> Clusters:
        chosen = replace(self, neighbors=self.neighbors.for_bits(n_bits))
        if self.n_clusters != "auto":
            return chosen
        return replace(chosen, n_clusters=max(2, min(2 ** (n_bits // 2), MOST_AUTOMATIC)))

    def build(self, X: Any, y: np.ndarray | None, rng: np.random.Generator) -> bqp.Operator:
        return Labels().build(None, self.members(X, rng), rng)

    def classes(self, y: np.ndarray | None, codes: NDArray[np.int8]) -> NDArray[Any]:
        return np.unique(codes, axis=0, return_inverse=True)[1].ravel()

    def members(self, X: Any, rng: np.random.Generator) -> NDArray[np.int32]:
        """The cluster of each sample, shape (n,)."""
        rows = self.neighbors.embedding(X, rng)
        count = MOST_AUTOMATIC if isinstance(self.n_clusters, str) else int(self.n_clusters)
        count = min(count, len(np.unique(rows, axis=0)))
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # nearly equal rows make fewer clusters
            means = KMeans(count, n_init=STARTS, random_state=int(rng.integers(2**31))).fit(rows)
        return np.asarray(means.labels_, dtype=np.int32)
