"""Pairs of nearly equal rows, found by codes and verified by floats, with a tested bound on how many are missed.

Random rows are compared with all rows by floats, so all their near-duplicates are known. They test within which radius
the codes of near-duplicates are. Their own pairs are part of the answer; the pairs of all other rows are those of codes
within the radius that floats verify.

Products of unit rows in float32 find the pairs that may count; their rounding has a bound. Each of these is compared
again by sums in float64 in a fixed order, so answers are exact for any blocks and threads.

Codes take O(n² · n_words) time, the check O(n_checked · n · n_features). Memory is O(n · n_features + n_pairs).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from hashlearn.bits import as_words, hamming_distances
from hashlearn.compression.promise import accepts, best_bet, fewest_values, log_stake, require_confidence
from hashlearn.core.arrays import EPS, FloatArray
from hashlearn.core.checks import generator, require_share, whole_number
from hashlearn.core.progress import ProgressCallback, tell
from hashlearn.core.rows import float64_rows
from hashlearn.core.threads import map_threads, one_blas_thread
from hashlearn.hashers import LSH, BaseHasher
from hashlearn.hashers.base import MAX_BITS
from hashlearn.linalg.unit_rows import raised_rows
from hashlearn.pages.formatting import percent
from hashlearn.search import HammingIndex
from hashlearn.search.interface import ByteArray, RowArray
from hashlearn.search.rescoring import pair_scores

Pairs: TypeAlias = tuple[RowArray, RowArray, FloatArray]  # first rows, second rows, cosines

ROWS_CHECKED = 2_000
ROWS_TO_FIT = 20_000
CHOOSING = 5  # one of this many rows chooses the bet, the others test
SPARE_ROWS = 2  # times the rows that the promise needs if none of them misses anything
ROWS_TO_COUNT = 32  # that estimate how many pairs of codes are within the radius
CODES_AT_ONCE = 1024
SCORES_AT_ONCE = 8_000_000  # in each thread
LARGEST_SHARE = 0.1  # of all pairs: to verify more of them one by one takes longer than to compare all by floats


def near_duplicates(
    X: Any,
    *,
    similarity: float = 0.95,
    missed: float = 0.05,
    confidence: float = 0.99,
    n_bits: int = 128,
    hasher: BaseHasher | None = None,
    n_checked: int | None = None,
    max_pairs: int = 10_000_000,
    random_state: Any = 0,
    progress: ProgressCallback | None = None,
) -> NearDuplicates:
    """All pairs of rows with a cosine of at least ``similarity``, but for a share that is promised to be small.

    The promise: averaged over rows that have a near-duplicate, at most the share ``missed`` of a row's near-duplicates
    is missed. It holds with probability ``confidence`` over the random rows that test it. No pair is returned wrongly.

    If codes cannot help, all pairs are compared by floats and nothing is missed; ``exact`` says so. This happens if
    at most twice ``n_checked`` rows are given, if near-duplicates are too rare to test the promise, or if too many
    codes are within the radius.

    Parameters
    ----------
    X : rows (n, n_features). A row of zeros has cosine 0 with every row
    similarity : the least cosine of a near-duplicate, in (0, 1]
    missed : the share that may be missed, in (0, 1)
    confidence : of the promise, in (0, 1)
    n_bits : code length of the default hasher, which is LSH for rows of unit length
    hasher : another one. It encodes X as it is given. If it is not fitted, a copy is fitted on at most 20,000 rows
    n_checked : random rows that are compared with all rows by floats; None: 2,000. It is doubled while too few of them
        have a near-duplicate
    max_pairs : more pairs are refused
    random_state : seed or Generator
    progress : called with a `hashlearn.core.progress.Progress`

    Examples
    --------
    >>> found = near_duplicates([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1]], similarity=0.99)
    >>> found.pairs, found.keep(), found.exact
    (array([[0, 2]]), array([0, 1]), True)
    """
    rows = float64_rows(X, "X")
    n = len(rows)
    if n < 2:
        raise ValueError(f"X must have at least 2 rows to compare, got shape {rows.shape}")
    require_share(similarity, "similarity", or_one=True)
    require_share(missed, "missed")
    require_confidence(confidence)
    n_bits = whole_number(n_bits, "n_bits", least=1, most=MAX_BITS)
    n_checked = ROWS_CHECKED if n_checked is None else whole_number(n_checked, "n_checked", least=1)
    if hasher is not None and not isinstance(hasher, BaseHasher):
        raise TypeError(f"hasher must be a hasher of hashlearn.hashers, such as ITQ(n_bits=128), got {hasher!r}")
    rng = generator(random_state)
    similar = _SimilarRows(rows, similarity, whole_number(max_pairs, "max_pairs", least=1), progress)
    order, claim = rng.permutation(n), 1.0 - missed
    fewest = fewest_values(claim, confidence) if claim < 1.0 else n  # rows with a near-duplicate that must test
    n_done, pairs = _checked(similar, order, n_checked, SPARE_ROWS * fewest * CHOOSING / (CHOOSING - 1))
    radius, n_candidates = None, n * (n - 1) // 2
    if n_done < n:
        hasher, given = (LSH(n_bits, random_state=rng), similar.unit) if hasher is None else (hasher, rows)
        if not hasattr(hasher, "n_features_in_"):
            hasher = clone(hasher).fit(given[np.sort(rng.choice(n, min(n, ROWS_TO_FIT), replace=False))])
        codes, n_bits = hasher.encode(given), hasher.n_bits
        radius = accepted_radius(pairs, order, codes, n_bits, claim, confidence)
        if (hamming_distances(codes[order[:ROWS_TO_COUNT]], codes) <= radius).mean() > LARGEST_SHARE:
            radius, n_done, pairs = None, n, similar.by_floats()
    n_with_duplicates = len(np.unique(pairs[0] if n_done < n else pairs[:2]))
    if radius is not None:
        n_candidates, near = similar.by_codes(codes, n_bits, radius)
        pairs = _joined([pairs, near])
    ends, cosines = similar.distinct(pairs)
    return NearDuplicates(
        pairs=ends,
        similarities=cosines,
        similarity=float(similarity),
        radius=radius,
        promised_missed=0.0 if radius is None else float(missed),
        confidence=1.0 if radius is None else float(confidence),
        n_rows=n,
        n_checked=n_done,
        n_with_duplicates=n_with_duplicates,
        n_candidates=n_candidates,
        exact=radius is None,
    )


@dataclass(frozen=True, eq=False)
class NearDuplicates:
    """Pairs of nearly equal rows, and what is promised about those that are not there. Print it for the verdict."""

    pairs: RowArray = field(repr=False)  # (n_pairs, 2), first < second, sorted
    similarities: FloatArray = field(repr=False)  # (n_pairs,), cosines
    similarity: float  # the least cosine that was asked for
    radius: int | None  # in bits; None if all pairs were compared by floats
    promised_missed: float  # mean share of a row's near-duplicates, over rows that have one
    confidence: float
    n_rows: int
    n_checked: int  # rows that were compared with all rows by floats
    n_with_duplicates: int  # checked rows that have a near-duplicate
    n_candidates: int  # pairs of codes within the radius; all pairs if exact
    exact: bool

    def groups(self) -> Any:
        """The group of each row, shape (n_rows,): rows that chains of pairs connect are in one group."""
        links = coo_array((np.ones(len(self.pairs), bool), tuple(self.pairs.T)), shape=(self.n_rows, self.n_rows))
        return connected_components(links, directed=False)[1]

    def keep(self) -> RowArray:
        """The rows that remain if each group keeps its lowest row, in ascending order."""
        return np.sort(np.unique(self.groups(), return_index=True)[1])

    def __str__(self) -> str:
        promise = "All pairs were compared by floats, so none is missed."
        if not self.exact:
            promise = (
                f"At most {percent(self.promised_missed)} of a row's near-duplicates are missed, averaged over rows "
                f"that have one, at {percent(self.confidence)} confidence.\nThis was tested with "
                f"{self.n_with_duplicates:,} such rows of {self.n_checked:,} random ones; codes differ in at most "
                f"{self.radius} bits."
            )
        return (
            f"{len(self.pairs):,} pairs of {self.n_rows:,} rows have a cosine of at least {self.similarity:.6g}.\n"
            f"{promise}\n{len(self.keep()):,} rows remain if each group of near-duplicates keeps one row."
        )


def _checked(similar: _SimilarRows, order: RowArray, n_checked: int, needed: float) -> tuple[int, Pairs]:
    """All pairs of the first rows of the order, as many rows as it takes until ``needed`` of them have a pair.

    How many it takes does not depend on codes, so the rows that have a pair are still random ones of their kind. Half
    of the rows against all rows cost as much as all pairs, so then all rows are checked.
    """
    done, parts = 0, []
    while 2 * n_checked < similar.n:
        parts.append(similar.by_floats(order[done:n_checked]))
        done = n_checked
        if sum(len(np.unique(first)) for first, _, _ in parts) >= needed:
            return done, _joined(parts)
        n_checked *= 2
    return similar.n, similar.by_floats()


def accepted_radius(
    pairs: Pairs,
    order: RowArray,
    codes: ByteArray,
    n_bits: int,
    claim: float,
    confidence: float,
) -> int:
    """The smallest radius that keeps the promise. ``n_bits`` itself is always accepted: it misses nothing.

    A row gives one value: the share of its near-duplicates whose codes are within the radius. A fifth of the rows
    choose the bet of `hashlearn.compression.promise`, the others test. Values grow with the radius, so with one bet
    all radii are one fixed sequence: it is tested from the largest radius downward while it is accepted, and a
    bisection finds its end.

    The test says that the claim holds for the mean over all rows but the choosing ones. Near-duplicates of these must
    be part of the answer, so that the claim holds for the mean over all rows. Rows are drawn without replacement, so
    the stake grows less on average than with replacement (Maclaurin's inequality), and the test stays valid.

    ``pairs`` are all near-duplicates of the first rows of ``order``, which is random; these rows come first in their
    pairs. At least ``CHOOSING / (CHOOSING − 1)`` times `promise.fewest_values` of them must have one.
    """
    # Rows with a near-duplicate, in the order of the draw.
    drawn, row = np.unique(np.argsort(order)[pairs[0]], return_inverse=True)
    n_near, n_choosing = np.bincount(row), len(drawn) // CHOOSING
    n_testing, goal = len(drawn) - n_choosing, -math.log1p(-confidence)
    words = as_words(codes)
    distances = np.bitwise_count(words[pairs[0]] ^ words[pairs[1]]).sum(axis=1)

    def shares(radius: int) -> Any:
        return np.bincount(row, weights=distances <= radius) / n_near

    def promising(radius: int) -> bool:
        """Whether the test would accept if its rows were like those that choose."""
        values = shares(radius)[:n_choosing]
        return log_stake(values, claim, best_bet(values, claim, n_testing)) * n_testing >= goal * n_choosing

    def accepted(radius: int) -> bool:
        return accepts(shares(radius)[n_choosing:], claim, bet, confidence)

    guess = bisect_left(range(n_bits), True, key=promising)
    enough = math.expm1(goal / n_testing) / (1.0 - claim)  # with a smaller bet not even n_bits would be accepted
    bet = max(best_bet(shares(guess)[:n_choosing], claim, n_testing), enough)
    return bisect_left(range(n_bits), True, key=accepted)


class _SimilarRows:
    """Finds the pairs of rows of X whose cosine is at least ``similarity``, up to rounding in float64.

    It refuses to collect more than ``max_pairs`` pairs.
    """

    def __init__(self, X: FloatArray, similarity: float, max_pairs: int, progress: ProgressCallback | None) -> None:
        self.X, self.n = np.ascontiguousarray(raised_rows(X)), len(X)
        self.similarity, self.max_pairs, self.progress = similarity, max_pairs, progress
        self.least = similarity - 4.0 * X.shape[1] * EPS  # equal rows count at similarity 1
        self.least_single = self.least - (X.shape[1] + 4) * float(np.finfo(np.float32).eps)
        norms = np.maximum(np.linalg.norm(self.X, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        self.unit = np.divide(self.X, norms, out=np.empty(X.shape, np.float32), casting="same_kind")

    def by_floats(self, rows: RowArray | None = None) -> Pairs:
        """All pairs of these rows with any other row, the given row first; or all pairs i < j."""
        given = np.arange(self.n) if rows is None else rows
        step = max(1, SCORES_AT_ONCE // self.n)

        def search(at: int) -> Pairs:
            part, later = given[at : at + step], at if rows is None else 0
            places, others = np.nonzero(self.unit[part] @ self.unit[later:].T >= self.least_single)
            first, second = part[places], others + later
            new = first < second if rows is None else first != second
            return self._verified(first[new], second[new])

        starts = range(0, len(given), step)
        with one_blas_thread():
            return self._collected(map_threads(search, starts), len(starts), "comparing rows by floats")

    def by_codes(self, codes: ByteArray, n_bits: int, radius: int) -> tuple[int, Pairs]:
        """How many pairs of codes are within the radius, and those of them that count."""
        candidates = []

        def search(at: int) -> Pairs:
            index = HammingIndex(n_bits)
            index.add(codes[at:])
            near = index.search_radius(codes[at : at + CODES_AT_ONCE], radius)
            first = np.repeat(np.arange(len(near)), np.diff(near.limits))
            later = first < near.indices
            first, second = at + first[later], at + near.indices[later]
            candidates.append(len(first))
            possible = _product_is_at_least(self.least_single, self.unit, first, second)
            return self._verified(first[possible], second[possible])

        starts = range(0, self.n, CODES_AT_ONCE)
        pairs = self._collected(map(search, starts), len(starts), "comparing codes")
        return sum(candidates), pairs

    def distinct(self, pairs: Pairs) -> tuple[RowArray, FloatArray]:
        """Each pair once with its lower row first, in order of (first, second)."""
        ends = np.sort(np.column_stack(pairs[:2]), axis=1)
        ends, places = np.unique(ends, axis=0, return_index=True)
        self._require_at_most(self.max_pairs, len(ends))
        return ends, pairs[2][places]

    def _collected(self, parts: Iterable[Pairs], n_parts: int, stage: str) -> Pairs:
        collected, n_pairs = [], 0
        for done, part in enumerate(parts, start=1):
            collected.append(part)
            n_pairs += len(part[0])
            self._require_at_most(2 * self.max_pairs, n_pairs)  # two checked rows can find their pair twice
            tell(self.progress, stage, done, n_parts)
        return _joined(collected)

    def _require_at_most(self, most: int, n_pairs: int) -> None:
        if n_pairs > most:
            raise ValueError(
                f"X has more than max_pairs={self.max_pairs} pairs with a cosine of at least {self.similarity}; "
                "raise similarity, or raise max_pairs"
            )

    def _verified(self, first: RowArray, second: RowArray) -> Pairs:
        """Those of the given pairs that count."""
        cosines = pair_scores(self.X, self.X, first, second, "cosine") if len(first) else np.empty(0)
        near = cosines >= self.least
        return first[near], second[near], np.minimum(cosines[near], 1.0)


def _joined(parts: list[Pairs]) -> Pairs:
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def _product_is_at_least(least, unit, first, second):  # type: ignore[no-untyped-def]
    """Which pairs have a product of at least ``least``."""
    out = np.empty(len(first), np.bool_)
    for pair in range(len(first)):
        out[pair] = np.dot(unit[first[pair]], unit[second[pair]]) >= least
    return out
