"""The nearest-neighbor graph of samples, weighted by how many neighbors two samples share.

Two samples of one class usually share many neighbors; an edge between classes is often a single coincidence. The weight
of an edge is therefore the number of common neighbors of its ends, plus one (Jarvis and Patrick 1973). O(n k²) time and
memory after the search for neighbors, which is exact, or approximate with FAISS for many samples.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from hashlearn.core.thresholds import MOST_EXACT_NEIGHBORS
from hashlearn.targets.base import centered_unit_rows

HNSW_LINKS, HNSW_BUILD, HNSW_SEARCH = 32, 80, 64


def neighbor_graph(X: Any, n_neighbors: int, metric: str) -> tuple[sp.csr_array, NDArray[np.intp]]:
    """Symmetric weights between distinct rows of X, and the index of each row among these.

    Equal rows are one node: a thousand copies would otherwise be each other's only neighbors.
    """
    rows = centered_unit_rows(X, center=False) if metric == "cosine" else _dense(X)
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    nodes, place = _distinct(rows)
    n = len(nodes)
    k = min(n_neighbors, n - 1)
    if k < 1:
        return sp.csr_array((n, n), dtype=np.float64), place
    near = _nearest(rows[nodes], k)
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


def _nearest(rows: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The k nearest other rows of each row."""
    if len(rows) > MOST_EXACT_NEIGHBORS and find_spec("faiss") is not None:
        return _nearest_approximate(rows, k)
    found: NDArray[np.intp] = (
        NearestNeighbors(n_neighbors=k, algorithm="brute").fit(rows).kneighbors(return_distance=False)
    )
    return found


def _nearest_approximate(rows: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    import faiss

    index = faiss.IndexHNSWFlat(rows.shape[1], HNSW_LINKS)
    index.hnsw.efConstruction, index.hnsw.efSearch = HNSW_BUILD, max(HNSW_SEARCH, 2 * k)
    index.add(rows)
    found = index.search(rows, k + 1)[1]
    # A row usually finds itself first; if it does not, drop its farthest neighbor.
    is_self = found == np.arange(len(rows))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    others = found[~is_self].reshape(len(rows), k)
    # If the index found fewer than asked for, repeat the nearest one.
    return np.asarray(np.where(others < 0, np.maximum(others[:, :1], 0), others), np.intp)


def _distinct(rows: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First index of every distinct row, in order of appearance, and the number of each row among these."""
    raw = (rows + np.float32(0.0)).view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel()  # −0 becomes 0
    first, place = np.unique(raw, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return first[order], rank[place.ravel()]


def _dense(X: Any) -> NDArray[Any]:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X)
