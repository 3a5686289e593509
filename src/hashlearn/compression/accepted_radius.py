"""The smallest radius that keeps a promise about near-duplicates, tested on rows whose near-duplicates are all known.

A row gives one value: the share of its near-duplicates whose codes are within the radius. A fifth of the rows choose
the bet of `hashlearn.compression.promise`, the others test. Values grow with the radius, so with one bet all radii are
one fixed sequence: it is tested from the largest radius downward while it is accepted, and a bisection finds its end.

The test says that the claim holds for the mean over all rows but the choosing ones. Near-duplicates of these must be
part of the answer, so that the claim holds for the mean over all rows. Rows are drawn without replacement, so the stake
grows less on average than with replacement (Maclaurin's inequality), and the test stays valid.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from hashlearn.bits import as_words
from hashlearn.compression.promise import accepts, best_bet, log_stake
from hashlearn.compression.similar_rows import Pairs
from hashlearn.core.arrays import FloatArray
from hashlearn.search.interface import ByteArray, RowArray

CHOOSING = 5  # one of this many rows chooses, the others test


def accepted_radius(
    pairs: Pairs, order: RowArray, codes: ByteArray, n_bits: int, claim: float, confidence: float
) -> int:
    """The smallest accepted radius. ``n_bits`` itself is always accepted: it misses nothing.

    ``pairs`` are all near-duplicates of the first rows of ``order``, which is random; these rows come first in their
    pairs. At least ``CHOOSING / (CHOOSING − 1)`` times `promise.fewest_values` of them must have one.
    """
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    drawn, row = np.unique(place[pairs[0]], return_inverse=True)  # rows with a near-duplicate, in the order of the draw
    n_near, n_choosing = np.bincount(row), len(drawn) // CHOOSING
    n_testing, goal = len(drawn) - n_choosing, -math.log1p(-confidence)
    words = as_words(codes)
    distances = np.bitwise_count(words[pairs[0]] ^ words[pairs[1]]).sum(axis=1)

    def shares(radius: int) -> FloatArray:
        found: FloatArray = np.bincount(row, weights=distances <= radius) / n_near
        return found

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
