"""The counts of `counting` for tensors, on their device: distances by matrix products, then one histogram."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.bits.tensors import items_at_once, packed_to_signs, require_comparable, sign_distances


class DeviceCodes:
    """Codes and classes of queries and database on one device."""

    def __init__(self, queries: Any, database: Any, query_classes: Any, database_classes: Any) -> None:
        import torch

        require_comparable(queries, database)
        self._queries, self._database = packed_to_signs(queries), packed_to_signs(database)
        self._query_classes = torch.as_tensor(query_classes, device=queries.device)
        self._database_classes = torch.as_tensor(database_classes, device=queries.device)

    def count(self, block: slice) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Items, and relevant items, at each distance, for a block of queries."""
        import torch

        queries, classes = self._queries[block], self._query_classes[block]
        rows, width = len(queries), 2 * (queries.shape[1] + 1)
        step = items_at_once(queries)
        total = torch.zeros(rows * width, dtype=torch.int64, device=queries.device)
        offset = (torch.arange(rows, device=queries.device) * width)[:, None]
        for first in range(0, len(self._database), step):
            part = slice(first, first + step)
            keys = 2 * sign_distances(queries, self._database[part]).long()
            keys += classes[:, None] == self._database_classes[part]
            total += torch.bincount((keys + offset).flatten(), minlength=rows * width)
        pairs_at = total.view(rows, -1, 2).cpu().numpy()
        return pairs_at.sum(axis=2), np.ascontiguousarray(pairs_at[:, :, 1])
