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
from numba import njit
from numpy.typing import NDArray

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
    x, key = parents[0], np.zeros(matrix.shape[0], np.uint64)
    for other in parents[1:]:
        key = 2 * key + (other == x)
    # One type each, so that the kernels are compiled once.
    columns, rows = matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False)
    cluster, count = _components(columns, rows, key)
    data, indices, indptr = _contracted(matrix.data, columns, rows, x, cluster, count)
    return Clusters(sp.csr_array((data, indices, indptr), shape=(count, count)), cluster)


@njit(cache=True, nogil=True)
def _components(indices, indptr, key):  # type: ignore[no-untyped-def]
    """The connected component of each variable among those of its key, and how many there are."""
    n = key.shape[0]
    label = np.full(n, -1, np.int32)
    stack = np.empty(n, np.int32)
    count = 0
    for i in range(n):
        if label[i] >= 0:
            continue
        label[i] = count
        stack[0], height = i, 1
        while height > 0:
            height -= 1
            u = stack[height]
            for q in range(indptr[u], indptr[u + 1]):
                v = indices[q]
                if label[v] < 0 and key[v] == key[u]:
                    label[v] = count
                    stack[height] = v
                    height += 1
        count += 1
    return label, count


@njit(cache=True, nogil=True)
def _contracted(data, indices, indptr, x, cluster, count):  # type: ignore[no-untyped-def]
    """CSR arrays of the sums of a_ij x_i x_j between clusters, without zeros."""
    n = x.shape[0]
    start = np.zeros(count + 1, np.int64)
    for i in range(n):
        start[cluster[i] + 1] += 1
    for c in range(count):
        start[c + 1] += start[c]
    members, filled = np.empty(n, np.int64), start[:-1].copy()
    for i in range(n):
        members[filled[cluster[i]]] = i
        filled[cluster[i]] += 1
    sums, columns = np.empty(data.shape[0], data.dtype), np.empty(data.shape[0], np.int32)
    rows = np.zeros(count + 1, np.int64)
    place = np.full(count, -1, np.int64)  # of a column in the current row
    used = 0
    for c in range(count):
        first = used
        for r in range(start[c], start[c + 1]):
            i = members[r]
            for q in range(indptr[i], indptr[i + 1]):
                d = cluster[indices[q]]
                if d != c:
                    if place[d] < 0:
                        place[d] = used
                        columns[used], sums[used] = d, 0.0
                        used += 1
                    sums[place[d]] += data[q] * x[i] * x[indices[q]]
        last, used = used, first
        for p in range(first, last):
            place[columns[p]] = -1
            if sums[p] != 0.0:
                columns[used], sums[used] = columns[p], sums[p]
                used += 1
        rows[c + 1] = used
    return sums[:used].copy(), columns[:used].copy(), rows
