"""Pairs of rows with a cosine of at least ``similarity``, found by floats, or by codes and then verified by floats.

Products of unit rows in float32 find the pairs that may count; their rounding has a bound. Each of these pairs is then
compared again by sums in float64 in a fixed order. So answers are exact for any blocks and threads. Blocks of matrix
products run on all cores, O(n_features) for each pair that is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numba import njit

from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.threads import map_row_blocks, map_threads, one_blas_thread
from hashlearn.linalg.unit_rows import raised_rows
from hashlearn.search.interface import ByteArray, RowArray
from hashlearn.search.pairs import ROWS_PER_GROUP, map_pairs_within
from hashlearn.search.rescoring import pair_scores

Pairs: TypeAlias = tuple[RowArray, RowArray, FloatArray]  # first rows, second rows, cosines

SCORES_AT_ONCE = 8_000_000  # in each thread
EPS_SINGLE = float(np.finfo(np.float32).eps)


class SimilarRows:
    """Finds the pairs of rows of X whose cosine is at least ``similarity``, up to rounding in float64.

    It refuses to collect more than ``max_pairs`` pairs.
    """

    def __init__(
        self, X: FloatArray, similarity: float, max_pairs: int, progress: ProgressCallback | None = None
    ) -> None:
        self.X, self.n = np.ascontiguousarray(raised_rows(X)), len(X)
        self.similarity, self.max_pairs, self.progress = similarity, max_pairs, progress
        self.least = similarity - 4.0 * X.shape[1] * EPS  # equal rows count at similarity 1
        self.least_single = self.least - (X.shape[1] + 4) * EPS_SINGLE
        self.unit = np.empty(X.shape, np.float32)
        self.step = max(1, SCORES_AT_ONCE // self.n)  # rows of a block

        def scale(a: int, b: int) -> None:
            norms = np.linalg.norm(self.X[a:b], axis=1, keepdims=True)
            self.unit[a:b] = self.X[a:b] / np.where(norms > 0.0, norms, 1.0)

        map_row_blocks(scale, *X.shape)

    def of_rows(self, rows: RowArray) -> Pairs:
        """All pairs of these rows with any other row. The given row is the first of its pair."""

        def search(at: int) -> Pairs:
            part = rows[at : at + self.step]
            places, others = np.nonzero(self.unit[part] @ self.unit.T >= self.least_single)
            different = part[places] != others
            return self._verified(part[places[different]], others[different])

        # Two given rows can find their pair twice.
        return self._collected(search, len(rows), "checking rows by floats", 2 * self.max_pairs)

    def all_pairs(self) -> Pairs:
        """All pairs i < j."""

        def search(at: int) -> Pairs:
            places, others = np.nonzero(self.unit[at : at + self.step] @ self.unit[at:].T >= self.least_single)
            later = places < others
            return self._verified(at + places[later], at + others[later])

        return self._collected(search, self.n, "comparing all rows by floats", self.max_pairs)

    def _collected(self, search: Callable[[int], Pairs], n_rows: int, stage: str, most: int) -> Pairs:
        starts = range(0, n_rows, self.step)
        with one_blas_thread():
            return self._joined(map_threads(search, starts), len(starts), stage, most)

    def within(self, codes: ByteArray, radius: int) -> tuple[int, Pairs]:
        """How many pairs of codes are within the radius, and those of them that count."""
        n_candidates = 0

        def counted(first: RowArray, second: RowArray) -> tuple[int, Pairs]:
            possible = _product_is_at_least(self.least_single, self.unit, first, second)
            return len(first), self._verified(first[possible], second[possible])

        def verified_groups() -> Iterator[Pairs]:
            nonlocal n_candidates
            for group in map_pairs_within(counted, codes, radius):
                n_candidates += sum(size for size, _ in group)
                yield joined_pairs(found for _, found in group)

        n_groups = -(-self.n // ROWS_PER_GROUP)
        pairs = self._joined(verified_groups(), n_groups, "comparing codes", self.max_pairs)
        return n_candidates, pairs

    def distinct(self, pairs: Pairs) -> Pairs:
        """Each pair once with its lower row first, in order of (first, second)."""
        low, high = np.minimum(pairs[0], pairs[1]), np.maximum(pairs[0], pairs[1])
        order = np.lexsort((high, low))
        low, high, cosines = low[order], high[order], pairs[2][order]
        new = np.ones(len(low), bool)
        new[1:] = (np.diff(low) != 0) | (np.diff(high) != 0)
        self._require_at_most(self.max_pairs, int(new.sum()))
        return low[new], high[new], cosines[new]

    def _joined(self, parts: Iterable[Pairs], n_parts: int, stage: str, most: int) -> Pairs:
        kept, n_pairs = [], 0
        for done, part in enumerate(parts, start=1):
            kept.append(part)
            n_pairs += len(part[0])
            self._require_at_most(most, n_pairs)
            tell(self.progress, stage, done, n_parts)
        return joined_pairs(kept)

    def _require_at_most(self, most: int, n_pairs: int) -> None:
        if n_pairs > most:
            raise ValueError(
                f"X has more than max_pairs={self.max_pairs} pairs with a cosine of at least {self.similarity}; "
                "raise similarity, or raise max_pairs"
            )

    def _verified(self, first: RowArray, second: RowArray) -> Pairs:
        """Those of the given pairs that count."""
        if not len(first):
            return NO_PAIRS
        cosines = pair_scores(self.X, self.X, first, second, "cosine")
        near = cosines >= self.least
        return first[near], second[near], np.minimum(cosines[near], 1.0)


NO_PAIRS: Pairs = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def joined_pairs(parts: Iterable[Pairs]) -> Pairs:
    """The pairs of all parts, in their order."""
    columns: Any = zip(NO_PAIRS, *parts, strict=True)
    first, second, cosines = (np.concatenate(column) for column in columns)
    return first, second, cosines


@njit(cache=True, nogil=True, fastmath=True)
def _product_is_at_least(least, unit, first, second):  # type: ignore[no-untyped-def]
    """Which pairs have a product of at least ``least``, by sums in any order."""
    out = np.empty(len(first), np.bool_)
    for pair in range(len(first)):
        a, b = unit[first[pair]], unit[second[pair]]
        product = np.float32(0.0)
        for d in range(len(a)):
            product += a[d] * b[d]
        out[pair] = product >= least
    return out
