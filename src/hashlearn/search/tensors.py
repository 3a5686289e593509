"""Exact search of codes that are tensors, on their own device, block by block.

O(n_queries · n · n_bits) multiplications; memory for one block of queries × items, independent of n.
"""

from __future__ import annotations

from typing import Any

from hashlearn.bits.tensors import items_at_once, packed_to_signs, require_comparable, sign_distances
from hashlearn.core.checks import require_k
from hashlearn.search.results import SearchResult

QUERIES_AT_ONCE = 1024


def nearest_codes(queries: Any, database: Any, k: int) -> SearchResult:
    """The k nearest of each query, nearest first, ties by row. Packed uint8 tensors in, tensors on their device out.

    The answers are those of `HammingIndex`; there is no index to build.
    """
    import torch

    n = len(database)
    k = require_k(k, n)
    require_comparable(queries, database)
    items = packed_to_signs(database)
    keys: Any = torch.empty((len(queries), k), dtype=torch.int64, device=items.device)
    for first in range(0, len(queries), QUERIES_AT_ONCE):
        part = packed_to_signs(queries[first : first + QUERIES_AT_ONCE])
        step = max(k, items_at_once(part))
        best: Any = None
        for start in range(0, n, step):
            rows = torch.arange(start, min(start + step, n), device=items.device)
            # One number that sorts by distance and then by row.
            block = sign_distances(part, items[start : start + step]).long() * n + rows
            block = block if best is None else torch.cat([best, block], dim=1)
            best = block.topk(min(k, block.shape[1]), dim=1, largest=False, sorted=True).values
        keys[first : first + QUERIES_AT_ONCE] = best
    return SearchResult(keys % n, (keys // n).to(torch.int32))
