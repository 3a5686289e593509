"""Pairs of nearly equal rows, found by codes and verified by floats, with a tested bound on how many are missed.

Random rows are compared with all rows by floats, so all their near-duplicates are known. They test within which radius
the codes of near-duplicates are. Their own pairs are part of the answer; the pairs of all other rows are those of codes
within the radius that floats verify.

Codes take O(n² · n_words) time, the check O(n_checked · n · n_features). Memory is O(n · n_features + n_pairs).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from hashlearn.bits import hamming_distances
from hashlearn.compression.accepted_radius import CHOOSING, accepted_radius
from hashlearn.compression.promise import fewest_values, require_confidence
from hashlearn.compression.similar_rows import Pairs, SimilarRows, joined_pairs
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator, require_share, whole_number
from hashlearn.core.progress import ProgressCallback
from hashlearn.core.rows import float64_rows
from hashlearn.hashers import LSH, BaseHasher
from hashlearn.hashers.base import MAX_BITS
from hashlearn.search.interface import ByteArray, RowArray

ROWS_CHECKED = 2_000
ROWS_TO_FIT = 20_000
SPARE_ROWS = 2  # times the rows that the promise needs if none of them misses anything
ROWS_TO_COUNT = 32  # that estimate how many pairs of codes are within the radius
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
    began = time.perf_counter()
    rows = float64_rows(X, "X")
    n = len(rows)
    if n < 2:
        raise ValueError(f"X must have at least 2 rows to compare, got shape {rows.shape}")
    require_share(similarity, "similarity", or_one=True)
    require_share(missed, "missed")
    require_confidence(confidence)
    n_bits = whole_number(n_bits, "n_bits", least=1, most=MAX_BITS)
    wanted = ROWS_CHECKED if n_checked is None else whole_number(n_checked, "n_checked", least=1)
    max_pairs = whole_number(max_pairs, "max_pairs", least=1)
    _require_hasher(hasher, rows.shape[1])

    rng = generator(random_state)
    similar = SimilarRows(rows, similarity, max_pairs, progress)
    order, claim = rng.permutation(n), 1.0 - missed
    needed = n  # rows with a near-duplicate
    if claim < 1.0:
        needed = math.ceil(SPARE_ROWS * fewest_values(claim, confidence) * CHOOSING / (CHOOSING - 1))
    n_done, pairs = _checked(similar, order, wanted, needed)
    radius, n_with_duplicates, n_candidates = None, len(np.unique(pairs[0])), n * (n - 1) // 2
    if n_done < n:
        codes, n_bits = _codes(rows, similar.unit, n_bits, hasher, rng)
        radius = accepted_radius(pairs, order, codes, n_bits, claim, confidence)
        if (hamming_distances(codes[order[:ROWS_TO_COUNT]], codes) <= radius).mean() > LARGEST_SHARE:
            radius, n_done, pairs = None, n, similar.all_pairs()
    if radius is None:
        n_with_duplicates = len(np.union1d(pairs[0], pairs[1]))
    else:
        n_candidates, near = similar.within(codes, radius)
        pairs = joined_pairs([pairs, near])
    first, second, cosines = similar.distinct(pairs)
    return NearDuplicates(
        pairs=np.column_stack([first, second]),
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
        seconds=time.perf_counter() - began,
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
    seconds: float

    def groups(self) -> NDArray[np.int32]:
        """The group of each row, shape (n_rows,): rows that chains of pairs connect are in one group."""
        links = coo_array((np.ones(len(self.pairs), bool), tuple(self.pairs.T)), shape=(self.n_rows, self.n_rows))
        groups: NDArray[np.int32] = connected_components(links, directed=False)[1]
        return groups

    def keep(self) -> RowArray:
        """The rows that remain if each group keeps its lowest row, in ascending order."""
        return np.sort(np.unique(self.groups(), return_index=True)[1])

    def __str__(self) -> str:
        verdict = "All pairs were compared by floats, so none is missed."
        if not self.exact:
            verdict = (
                f"At most {100 * self.promised_missed:.6g} % of a row's near-duplicates are missed, averaged over rows "
                f"that have one, at {100 * self.confidence:.10g} % confidence.\n"
                f"The promise rests on {self.n_with_duplicates:,} rows that have one, "
                f"of {self.n_checked:,} random rows; codes differ in at most {self.radius} bits."
            )
        return (
            f"{len(self.pairs):,} pairs of {self.n_rows:,} rows have a cosine of at least {self.similarity:.6g}. "
            f"Floats verified every pair.\n{verdict}\n"
            f"{len(self.keep()):,} rows remain if each group of near-duplicates keeps one row."
        )


def _checked(similar: SimilarRows, order: RowArray, wanted: int, needed: int) -> tuple[int, Pairs]:
    """All pairs of the first rows of the order, as many rows as it takes until ``needed`` of them have a pair.

    How many it takes does not depend on codes, so the rows that have a pair are still random ones of their kind. Half
    of the rows against all rows cost as much as all pairs, so then all rows are checked.
    """
    done, parts = 0, []
    while 2 * wanted < similar.n:
        parts.append(similar.of_rows(order[done:wanted]))
        done = wanted
        if sum(len(np.unique(first)) for first, _, _ in parts) >= needed:
            return done, joined_pairs(parts)
        wanted *= 2
    return similar.n, similar.all_pairs()


def _codes(
    rows: FloatArray, unit: NDArray[np.float32], n_bits: int, hasher: BaseHasher | None, rng: np.random.Generator
) -> tuple[ByteArray, int]:
    """Packed codes of all rows, and their number of bits. The hasher knows nothing about which rows are checked."""
    given = unit if hasher is None else rows
    n_fit = min(len(given), ROWS_TO_FIT)
    if hasher is None:
        hasher = LSH(n_bits=n_bits, random_state=rng)
    if not _is_fitted(hasher):
        hasher = clone(hasher).fit(given[np.sort(rng.choice(len(given), n_fit, replace=False))])
    return hasher.encode(given), hasher.n_bits


def _is_fitted(hasher: BaseHasher) -> bool:
    try:
        check_is_fitted(hasher)
    except NotFittedError:
        return False
    return True


def _require_hasher(hasher: Any, n_features: int) -> None:
    if hasher is None:
        return
    if not isinstance(hasher, BaseHasher):
        raise TypeError(f"hasher must be a hasher of hashlearn.hashers, such as ITQ(n_bits=128), got {hasher!r}")
    if _is_fitted(hasher) and hasher.n_features_in_ != n_features:
        raise ValueError(f"hasher was fitted on {hasher.n_features_in_} features, but X has {n_features}")
