"""Codes and their ids in ascending order of id.

A search breaks ties by row, which is by id. Adding ids above the last one is cheap; every other change costs one pass
over all codes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import (
    INTEGER,
    LARGEST_ID,
    WORDS,
    IdArray,
    checked_ids,
    empty_ids,
    order_of,
    rows_of,
    shown,
    type_of,
)
from hashlearn.search.interface import checked_codes


class CodeTable:
    """Rows of (id, packed code), ids ascending."""

    def __init__(self, n_bits: int) -> None:
        self.n_bits = n_bits
        self.id_type: str | None = None  # that of the first ids
        self.next_id = 0  # larger than every integer that was ever an id
        self._n = 0
        self._ids: list[IdArray] = [empty_ids(INTEGER)]  # in parts, which are joined when they are read
        self._codes = [np.zeros((0, -(-n_bits // 8)), np.uint8)]

    def __len__(self) -> int:
        return self._n

    @property
    def ids(self) -> IdArray:
        """All ids, ascending."""
        return _joined(self._ids)

    @property
    def codes(self) -> NDArray[np.uint8]:
        """All codes, in the order of the ids."""
        return _joined(self._codes)

    def add(self, codes: Any, ids: Any = None) -> IdArray:
        """Add codes under new ids (None: the next free ones) and return the ids. All rows are added, or none."""
        codes = checked_codes(codes, self.n_bits)
        ids = self._next_ids(len(codes)) if ids is None else checked_ids(ids, len(codes), self.id_type)
        self._put(codes, ids, replace=False)
        return ids

    def upsert(self, codes: Any, ids: Any) -> None:
        """Put each code under its id, in place of the one that is there. All rows are stored, or none."""
        codes = checked_codes(codes, self.n_bits)
        self._put(codes, checked_ids(ids, len(codes), self.id_type), replace=True)

    def _next_ids(self, n: int) -> IdArray:
        if n and self.id_type not in (None, INTEGER):
            raise ValueError(f"ids must be given, because those in the index are {WORDS[str(self.id_type)]}")
        if n > LARGEST_ID - self.next_id:
            raise ValueError(f"ids after {self.next_id - 1} would not fit 64 bits; give ids of your own")
        return np.arange(self.next_id, self.next_id + n)

    def _put(self, codes: NDArray[np.uint8], ids: IdArray, *, replace: bool) -> None:
        if len(ids) == 0:
            return
        if ids.dtype.kind == "i" and (ids[1:] > ids[:-1]).all():  # which takes less time than sorting
            sorted_ids, codes = ids.copy(), codes.copy()  # the caller may change its own arrays
        else:
            order = order_of(ids)
            sorted_ids, codes = ids[order], codes[order]
        behind = not len(self) or sorted_ids[0] > self._ids[-1][-1]
        if not behind:
            rows = rows_of(sorted_ids, self.ids)
            known = rows >= 0
            if known.any() and not replace:
                raise ValueError(
                    f"ids must be new, but {shown(sorted_ids[known][0])} is there already ({known.sum()} such id(s)); "
                    "upsert replaces them"
                )
            if known.any():
                changed = self.codes.copy()  # a search in another thread may still read the old ones
                changed[rows[known]] = codes[known]
                self._codes = [changed]
                sorted_ids, codes = sorted_ids[~known], codes[~known]
        if len(sorted_ids) == 0:
            return
        if self.id_type is None:
            self.id_type = type_of(ids)
            self._ids = [empty_ids(self.id_type)]
        self._ids.append(sorted_ids)
        self._codes.append(codes)
        self._n += len(sorted_ids)
        if self.id_type == INTEGER:
            self.next_id = max(self.next_id, int(sorted_ids[-1]) + 1)
        if not behind:
            self._select(order_of(self.ids))

    def remove(self, ids: Any) -> int:
        """Remove the codes with these ids. If one is missing, raise KeyError and remove nothing."""
        ids = checked_ids(ids, id_type=self.id_type)
        rows = rows_of(ids, self.ids)
        if (rows < 0).any():
            missing = ids[rows < 0]
            raise KeyError(f"ids must be in the index, but {shown(missing[0])} is not ({len(missing)} such id(s))")
        return self.remove_rows(rows)

    def remove_rows(self, rows: NDArray[np.int64]) -> int:
        """Remove distinct rows."""
        if len(rows):
            self._select(np.delete(np.arange(len(self)), rows))
        return len(rows)

    def _select(self, rows: NDArray[np.int64]) -> None:
        """Keep only these rows, in this order."""
        self._ids, self._codes, self._n = [self.ids[rows]], [self.codes[rows]], len(rows)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All parts as one array, which takes their place."""
    if len(parts) > 1:
        parts[:] = [np.concatenate(parts)]
    return parts[0]
