"""A toy store: a file that begins with an array of NumPy, whose rows are a key and a code. Every search is exact."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hashlearn.search.ids import INTEGER, IdArray
from hashlearn.search.stores.file_store import FileStore


class ToyStore(FileStore):
    """A file that ``numpy.load`` reads."""

    packages, extra = ("numpy",), "data"
    signature = (-36, b"\nhashlearn codes in NumPy, format 1\n")
    kinds: ClassVar = {"flat": {}}

    def _updated(self, index: Any, changes: list[IdArray]) -> Any:
        self._names, codes = self.index.ids, self.index.codes
        index = np.zeros(len(codes), [("key", np.int64), ("code", np.uint8, (self.n_bytes,))])
        index["key"] = self._names if self.id_type == INTEGER else np.arange(len(codes))
        index["code"] = codes
        return index

    def _nearest(self, index: Any, codes: NDArray[np.uint8], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        raise NotImplementedError  # an index of kind "flat" is never asked

    def _write(self, index: Any, place: str) -> None:
        with open(place, "wb") as file:
            np.save(file, index)

    def _load(self, place: str, n_bytes: int) -> tuple[Any, IdArray, NDArray[np.uint8]]:
        with open(place, "rb") as file:
            index = np.load(file)
        return index, index["key"], index["code"]
