"""Cluster crossover: variables that several solutions relate in the same way become one variable.

Two neighbors i and j belong together if x_i x_j is the same in every parent. The connected components of this relation
are the clusters. With x the first parent and y_c = ±1 for cluster c, the point x_i y_c(i) has the value of a smaller
problem in y with weights Σ a_ij x_i x_j over the pairs between two clusters. Every parent is a point of this problem,
so its optimum is at least as good as the best of them. On tori and other graphs of low dimension parents differ by
many separate clusters, and the smaller problem combines the best parts of all (Houdayer and Martin, 1999).

The cost is O(nonzeros).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

Signs = NDArray[Any]


class Clusters(NamedTuple):
    """The smaller problem, and the cluster of each variable."""

    matrix: sp.csr_array
    cluster: NDArray[np.int32]


def clusters(matrix: sp.csr_array, parents: Sequence[Signs]) -> Clusters:
    """The problem in one sign for each cluster of ``parents``; all +1 is the first of them. No diagonal in, none out.

    >>> chain = sp.csr_array(np.eye(4, k=1) + np.eye(4, k=-1))
    >>> found = clusters(chain, [np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, -1.0, -1.0, 1.0])])
    >>> found.cluster, found.matrix.toarray()
    (array([0, 0, 1, 1], dtype=int32), array([[ 0., -1.],
           [-1.,  0.]]))
    """
    x, key = parents[0], np.zeros(matrix.shape[0], np.int64)
    for other in parents[1:]:
        key = 2 * key + (other == x)
    columns = matrix.indices
    rows = np.repeat(np.arange(len(x), dtype=columns.dtype), np.diff(matrix.indptr))
    together = key[rows] == key[columns]
    joined = sp.coo_array(
        (np.ones(np.count_nonzero(together), np.int8), (rows[together], columns[together])), matrix.shape
    )
    count, cluster = connected_components(joined.tocsr(), directed=False)
    i, j = cluster[rows], cluster[columns]
    between = i != j
    weights = (matrix.data * x[rows] * x[columns])[between]
    small = sp.coo_array((weights, (i[between], j[between])), shape=(count, count)).tocsr()
    small.eliminate_zeros()
    return Clusters(small, cluster)
