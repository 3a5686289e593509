"""`VectorIndex`: vectors in, neighbors out. A hasher makes their codes, and candidates are ranked by their floats."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hashlearn.core.checks import require_k
from hashlearn.core.rows import as_rows, require_same_columns
from hashlearn.hashers import BaseHasher
from hashlearn.search import HammingIndex, SearchResult, VectorFile
from hashlearn.search.ids import IdArray

RESCORING = {"cosine": "cosine", "euclidean": "l2"}  # what the metrics are called by `rescore`
READ_ROWS = 65_536


@dataclass(frozen=True, eq=False, repr=False)
class VectorIndex:
    """A `HammingIndex` that takes vectors where that takes codes. `Compression.index` makes it.

    ``add``, ``upsert``, ``remove``, ``count``, ``ids``, ``where`` and ``save`` are those of `HammingIndex`. Rows are an
    array, which may be memory-mapped and is not copied, a frame, a column of vectors, a tensor, or a file that
    `hashlearn.files.open_rows` opened.

    Parameters
    ----------
    hasher : fitted
    codes : the index of the codes, with the vectors of its rows if ``keep_floats``
    mode : "hamming" or "asymmetric"
    depth_for : gives the number of candidates to rescore for a number of rows
    metric : "cosine" or "euclidean"
    keep_floats : False: vectors are not kept, and the order by code is the answer
    """

    hasher: BaseHasher
    codes: HammingIndex
    mode: str
    depth_for: Callable[[int], int]
    metric: str = "cosine"
    keep_floats: bool = True

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        depth = self.depth_for(len(self))
        how = f"{depth} candidates rescored by {self.metric}" if self.keep_floats else "codes alone"
        return f"VectorIndex of {len(self):,} rows, {self.codes.n_bits} bits, {self.mode}, {how}"

    @property
    def ids(self) -> IdArray:
        """All ids, ascending: int64, or objects that are text."""
        return self.codes.ids

    def add(self, vectors: Any, ids: Any = None) -> IdArray:
        """Add rows under new ids (None: the next free integers, from 0) and return the ids. All are added, or none."""
        vectors = as_rows(vectors)
        return self.codes.add(self._encoded(vectors), ids, vectors if self.keep_floats else None)

    def upsert(self, vectors: Any, ids: Any) -> None:
        """Store each row under its id, in place of the row that is there. All are stored, or none."""
        vectors = as_rows(vectors)
        self.codes.upsert(self._encoded(vectors), ids, vectors if self.keep_floats else None)

    def remove(self, ids: Any = None, *, where: Any = None) -> int:
        """Remove rows by id, or those of ``where``, and return how many; KeyError if one of ``ids`` is missing."""
        return self.codes.remove(ids, where=where)

    def count(self, where: Any = None) -> int:
        """How many rows there are, or how many of them ``where`` selects."""
        return self.codes.count(where)

    def search(self, queries: Any, k: int = 10, *, where: Any = None) -> SearchResult:
        """The k nearest rows of each query, nearest first. A promise is about its own k, and about all rows."""
        k, queries = require_k(k, len(self)), as_rows(queries, "queries")
        asymmetric = self.mode == "asymmetric"
        codes = None if asymmetric else self.hasher.encode(queries)
        margins = self.hasher.decision_function(queries) if asymmetric else None
        if self.keep_floats:
            depth, metric = max(k, self.depth_for(len(self))), RESCORING[self.metric]
            asked: dict[str, Any] = {"depth": depth, "metric": metric, "where": where, "margins": margins}
            return self.codes.search_rescored(codes, queries, k, **asked)
        if asymmetric:
            return self.codes.search(k=k, margins=margins, where=where)
        return self.codes.search(codes, k, where=where)

    def save(self, path: str | PathLike[str]) -> None:
        """Write ids, codes and vectors to one file, which `Compression.load_index` reads; the hasher is not in it."""
        self.codes.save(path)

    def _encoded(self, vectors: Any) -> NDArray[np.uint8]:
        if not isinstance(vectors, VectorFile):
            return self.hasher.encode(vectors)
        hasher = copy(self.hasher)
        known = hasher.__dict__.pop("feature_names_in_", None)  # they are compared here, and arrays have no names
        require_same_columns(getattr(vectors, "names", None), known, "X", "the model")
        batches = vectors.pick(np.arange(vectors.n_rows), READ_ROWS)
        return np.concatenate([hasher.encode(batch) for batch in batches])
