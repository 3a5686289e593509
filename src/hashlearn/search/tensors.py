"""Exact search of codes that are tensors, on their own device: blocks of distances by matrix products, best k kept.

O(n_queries · n · n_bits) multiplications; memory for one block of queries × items, whatever n is.
"""

from __future__ import annotations

from typing import Any

from hashlearn.bits.tensors import packed_to_signs, sign_distances
from hashlearn.search.inputs import require_k
from hashlearn.search.results import SearchResult

PAIRS_AT_ONCE = {"cpu": 1 << 21}
PAIRS_ON_DEVICE = 1 << 27
QUERIES_AT_ONCE = 1024


def nearest_codes(queries: Any, database: Any, k: int) -> SearchResult:
    """The k nearest of each query, nearest first, ties by row; packed uint8 tensors in, tensors on their device out.

    What `HammingIndex` finds in arrays, for tensors and without an index to build.
    """
    import torch

    k = require_k(k, len(database))
    if queries.device != database.device:
        raise ValueError(f"queries are on {queries.device}, but the database is on {database.device}; move one of them")
    if queries.shape[1] != database.shape[1]:
        raise ValueError(
            f"queries and database must have rows of equal width, got {tuple(queries.shape)} and "
            f"{tuple(database.shape)}"
        )
    items, n = packed_to_signs(database), len(database)
    pairs = PAIRS_AT_ONCE.get(database.device.type, PAIRS_ON_DEVICE)
    found = []
    for first in range(0, len(queries), QUERIES_AT_ONCE):
        asked = packed_to_signs(queries[first : first + QUERIES_AT_ONCE])
        step = max(k, pairs // len(asked))
        best = None
        for start in range(0, n, step):
            block = items[start : start + step]
            # One number that sorts by distance and then by row.
            keys = sign_distances(asked, block).long() * n + torch.arange(
                start, start + len(block), device=block.device
            )
            if best is not None:
                keys = torch.cat([best, keys], dim=1)
            best = keys.topk(min(k, keys.shape[1]), dim=1, largest=False, sorted=True).values
        found.append(best)
    keys = torch.cat(found)
    return SearchResult(keys % n, (keys // n).to(torch.int32))
