"""Codes and their ids in ascending order of id. Engines are built from this table, and files are written from it.

An engine that breaks ties by row therefore breaks them by id. Adding ids above the last one is cheap; every other
change costs one pass over all codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.inputs import checked_codes, checked_ids


class CodeTable:
    """Rows of (id, packed code), ids ascending."""

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits
        self.next_id = 0  # larger than every id ever used
        self.rewritten = 0  # how often rows have moved; while it is unchanged, new rows follow the old ones
        self._n = 0
        self._ids = [np.zeros(0, np.int64)]  # in parts, which are joined when they are read
        self._codes = [np.zeros((0, -(-n_bits // 8)), np.uint8)]

    def __len__(self) -> int:
        return self._n

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids, ascending."""
        return _joined(self._ids)

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of the ids."""
        return _joined(self._codes)

    def add(self, codes: Any, ids: Any = None) -> NDArray[np.int64]:
        """Add codes under new ids (None: the next free ones) and return the ids. All rows are added, or none."""
        codes = checked_codes(codes, self.n_bits)
        if ids is None:
            if len(codes) > np.iinfo(np.int64).max - self.next_id:
                raise ValueError(f"ids after {self.next_id - 1} would not fit 64 bits; give ids of your own")
            ids = np.arange(self.next_id, self.next_id + len(codes))
        else:
            ids = checked_ids(ids, len(codes))
        if len(ids) == 0:
            return ids
        order = np.argsort(ids, kind="stable")
        sorted_ids, codes = ids[order], codes[order]
        behind = not len(self) or sorted_ids[0] > self._ids[-1][-1]
        if not behind:
            known = self.rows_of(sorted_ids) >= 0
            if known.any():
                raise ValueError(
                    f"ids must be new, but {sorted_ids[known][0]} is there already ({known.sum()} such id(s)); "
                    "remove it first"
                )
        self._ids.append(sorted_ids)
        self._codes.append(codes)
        self._n += len(ids)
        self.next_id = max(self.next_id, int(sorted_ids[-1]) + 1)
        if not behind:
            self._select(np.argsort(self.ids, kind="stable"))
        return ids

    def remove(self, ids: Any) -> None:
        """Remove the codes with these ids. If one is missing, raise KeyError and remove nothing."""
        ids = checked_ids(ids)
        rows = self.rows_of(ids)
        if (rows < 0).any():
            missing = ids[rows < 0]
            raise KeyError(f"ids must be in the index, but {missing[0]} is not ({len(missing)} such id(s))")
        if len(ids):
            self._select(np.delete(np.arange(len(self)), rows))

    def rows_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each id, −1 for an unknown id."""
        if len(self) == 0:
            return np.full(len(ids), -1)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self.ids[places] == ids, places, -1)

    def _select(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows, in this order."""
        self._ids, self._codes, self._n = [self.ids[rows]], [self.codes[rows]], len(rows)
        self.rewritten += 1


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All parts as one array, which takes their place."""
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]
