"""`Searcher`: encodes a query, takes candidates by code, and ranks them again by their floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.core.arrays import to_numpy
from hashlearn.core.checks import require_k
from hashlearn.core.rows import as_rows
from hashlearn.hashers import BaseHasher
from hashlearn.persistence import fingerprint
from hashlearn.search import HammingIndex, SearchResult, rescore

RESCORING = {"cosine": "cosine", "euclidean": "l2"}  # what the metrics are called by `rescore`


class Searcher:
    """A database of codes, with its floats if candidates are to be rescored.

    Parameters
    ----------
    hasher : fitted
    vectors : rows of the database: an array, which may be memory-mapped, a frame, or a column of vectors. Without
        ``keep_floats`` they are not kept
    mode : "hamming" or "asymmetric"
    depth : candidates to rescore
    metric : "cosine" or "euclidean"
    keep_floats : False: the order by code is the answer
    codes : of the rows, if they are known
    """

    def __init__(
        self,
        hasher: BaseHasher,
        vectors: Any,
        *,
        mode: str,
        depth: int,
        metric: str = "cosine",
        keep_floats: bool = True,
        codes: Any = None,
    ) -> None:
        self.hasher, self.mode, self.depth, self.metric = hasher, mode, depth, metric
        self.index = HammingIndex(hasher.n_bits, model=fingerprint(hasher))
        vectors = as_rows(vectors)
        self.index.add(hasher.encode(vectors) if codes is None else codes)
        self._vectors = np.asarray(to_numpy(vectors)) if keep_floats else None

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        rescored = "codes alone" if self._vectors is None else f"{self.depth} candidates rescored by {self.metric}"
        return f"Searcher of {len(self):,} rows, {self.hasher.n_bits} bits, {self.mode}, {rescored}"

    def search(self, queries: Any, k: int = 10) -> SearchResult:
        """The k nearest rows of each query, nearest first. A promise is about its own k."""
        k = require_k(k, len(self))
        depth = k if self._vectors is None else min(max(self.depth, k), len(self))
        if self.mode == "asymmetric":
            candidates: SearchResult = self.index.search(k=depth, margins=self.hasher.decision_function(queries))
        else:
            candidates = self.index.search(self.hasher.encode(queries), depth)
        if self._vectors is None:
            return candidates
        return rescore(candidates, queries, self._vectors, k, metric=RESCORING[self.metric])
