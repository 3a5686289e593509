"""The nearest rows of each row, exactly: one block of inner products after the other, with the best k kept.

O(n_queries · n · n_features) operations in float32. Memory is O(n_queries · k) and one block for each thread. Tensors
are searched on their own device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hashlearn.core.arrays import is_tensor, numbers_at_once
from hashlearn.core.threads import map_threads, one_blas_thread

QUERIES, ROWS = 256, 4096  # of one block of products: 4 MB, which stay in the cache
TENSOR_NUMBERS = (1 << 22, 1 << 29)


def nearest_rows(queries: Any, rows: Any, k: int, own: Any = None) -> Any:
    """The k rows nearest to each query by Euclidean distance, nearest first, ties by index; shape (n_queries, k).

    Parameters
    ----------
    queries, rows : float32 arrays, or tensors on one device
    k : at most ``len(rows)``, or one less with ``own``
    own : index of each query among the rows, which is left out; −1 for a query that is not among them

    >>> rows = np.array([[0.0], [1.0], [3.0]], np.float32)
    >>> nearest_rows(rows, rows, 1, own=np.arange(3))
    array([[1],
           [0],
           [1]])
    """
    if is_tensor(rows):
        return _nearest_tensors(queries, rows, k, own)
    halves = 0.5 * np.einsum("ij,ij->i", rows, rows, dtype=np.float32)
    found = np.empty((len(queries), k), np.int64)
    left_out = np.full(len(queries), -1) if own is None else np.asarray(own, np.int64)

    def search(first: int) -> None:
        some = slice(first, min(first + QUERIES, len(queries)))
        best = np.full((some.stop - first, k), -np.inf, np.float32)
        kept = np.zeros(best.shape, np.int64)
        for start in range(0, len(rows), ROWS):
            scores = queries[some] @ rows[start : start + ROWS].T
            _keep_best(scores, halves[start : start + ROWS], start, left_out[some], best, kept)
        found[some] = kept

    with one_blas_thread():
        list(map_threads(search, range(0, len(queries), QUERIES)))
    return found


@njit(cache=True, nogil=True)
def _keep_best(scores, halves, start, left_out, best, kept):  # type: ignore[no-untyped-def]
    """Insert the rows of a block, in order, into the sorted lists of the best. An equal score stays behind."""
    k = best.shape[1]
    for i in range(scores.shape[0]):
        last = best[i, k - 1]
        for j in range(scores.shape[1]):
            score = scores[i, j] - halves[j]
            if score > last and start + j != left_out[i]:
                place = k - 1
                while place > 0 and best[i, place - 1] < score:
                    best[i, place], kept[i, place] = best[i, place - 1], kept[i, place - 1]
                    place -= 1
                best[i, place], kept[i, place] = score, start + j
                last = best[i, k - 1]


def _nearest_tensors(queries: Any, rows: Any, k: int, own: Any) -> Any:
    import torch

    halves = 0.5 * rows.square().sum(dim=1)
    at_once = max(1, numbers_at_once(rows.device, *TENSOR_NUMBERS) // len(rows))
    parts: list[Any] = []
    for first in range(0, len(queries), at_once):
        scores = queries[first : first + at_once] @ rows.T - halves
        if own is not None:
            mine = torch.as_tensor(own[first : first + at_once], device=rows.device)
            among = torch.nonzero(mine >= 0).ravel()
            scores[among, mine[among]] = -torch.inf
        parts.append(_first_k(scores, k))
    return torch.cat(parts).cpu().numpy()


def _first_k(scores: Any, k: int) -> Any:
    """Columns of the k largest scores of every row; of equal scores the first. `topk` alone takes any of them."""
    import torch

    values, found = scores.topk(k, dim=1)
    last = values[:, -1:]
    tied = torch.nonzero((scores >= last).sum(dim=1) > k).ravel()
    if len(tied):
        some, last = scores[tied], last[tied]
        order = torch.arange(scores.shape[1], 0, -1, device=scores.device, dtype=torch.int32)
        found[tied] = torch.where(some > last, len(order) + 1, order * (some == last)).topk(k, dim=1).indices
    found = found.sort(dim=1).values
    return found.gather(1, scores.gather(1, found).sort(dim=1, descending=True, stable=True).indices)
