"""Codes and their ids, in ascending order of id: the one truth that engines are built from and files are written of.

Rows are in order of id, so an engine that breaks ties by row breaks them by id. Adding behind the last id is cheap,
however often; anything else costs one pass over all codes.
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
        self.rewritten = 0  # how often rows have moved; while it stays, new rows are behind the old ones
        self._ids: list[NDArray[np.int64]] = []
        self._codes: list[NDArray[np.uint8]] = []
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids, ascending."""
        return self._joined()[0]

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of the ids."""
        return self._joined()[1]

    def add(self, codes: Any, ids: Any = None) -> NDArray[np.int64]:
        """Add codes under new ids; None: the next free ones. Returns the ids. All rows are added, or none."""
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
            all_ids, all_codes = self._joined()
            self._replace(np.argsort(all_ids, kind="stable"), all_ids, all_codes)
        return ids

    def remove(self, ids: Any) -> None:
        """Remove the codes with these ids; an id that is not there is an error, and then nothing is removed."""
        ids = checked_ids(ids)
        rows = self.rows_of(ids)
        if (rows < 0).any():
            missing = ids[rows < 0]
            raise KeyError(f"ids must be in the index, but {missing[0]} is not ({len(missing)} such id(s))")
        if len(ids):
            keep = np.ones(len(self), bool)
            keep[rows] = False
            self._replace(np.flatnonzero(keep), *self._joined())

    def rows_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each id, −1 where there is none."""
        if len(self) == 0:
            return np.full(len(ids), -1)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self) - 1)
        return np.where(self.ids[places] == ids, places, -1)

    def _replace(self, rows: NDArray[np.int64], ids: NDArray[np.int64], codes: NDArray[np.uint8]) -> None:
        self._ids, self._codes, self._n = [ids[rows]], [codes[rows]], len(rows)
        self.rewritten += 1
        if self._n == 0:
            self._ids, self._codes = [], []

    def _joined(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        if not self._ids:
            return np.zeros(0, np.int64), np.zeros((0, -(-self.n_bits // 8)), np.uint8)
        if len(self._ids) > 1:
            self._ids, self._codes = [np.concatenate(self._ids)], [np.concatenate(self._codes)]
        return self._ids[0], self._codes[0]
