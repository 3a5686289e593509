"""The coordinate descent of BRE: one weight of one hash function at a time, each solved exactly.

With the other bits given, a pair costs (wanted − hamming/n_bits)², so the objective of one bit is a constant plus the
sum of ``costs`` over pairs whose bits differ. Along one weight w the margins are rest + w · k: every sample changes its
bit at one value of w, and walking through these values in order, with one update for each partner, visits every
value the objective can take. O(n log n + pairs) for a weight.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.hashers.baselines.bre_pairs import Pairs


def descend_bit(
    K: FloatArray, weights: FloatArray, order: NDArray[np.intp], pairs: Pairs, costs: FloatArray, signs: FloatArray
) -> float:
    """Improve ``weights`` (m,) and ``signs`` (n,) of one hash function in place, weight after weight in this order; the
    change of Σ costs, never above 0."""
    margins = K @ weights
    total = 0.0
    for q in order:
        k = np.ascontiguousarray(K[:, q])
        new = _best_weight(k, weights[q], margins, pairs, costs)
        moved = margins + (new - weights[q]) * k
        wanted = np.where(moved >= 0.0, 1.0, -1.0)
        change = _change(signs, wanted, pairs.starts, pairs.partners, costs)  # with what rounding made of the signs
        if change < 0.0:
            total += change
            weights[q], margins, signs[:] = new, moved, wanted
    return total


def _best_weight(k: FloatArray, w: float, margins: FloatArray, pairs: Pairs, costs: FloatArray) -> float:
    """The value of one weight that minimises Σ costs, in the middle of its interval."""
    rest = margins - w * k
    moving = np.flatnonzero(k)
    crossings = -rest[moving] / k[moving]
    order = np.argsort(crossings, kind="stable")
    crossings, walk = crossings[order], moving[order]
    signs = np.where(np.where(k == 0.0, rest >= 0.0, k < 0.0), 1.0, -1.0)  # for w → −∞
    place = int(_walk(crossings, walk, signs, pairs.starts, pairs.partners, costs))
    if len(walk) == 0:
        return w
    if place < 0:
        return float(crossings[0] - 1.0 - abs(crossings[0]))
    if place == len(walk) - 1:
        return float(crossings[-1] + 1.0 + abs(crossings[-1]))
    return float(0.5 * (crossings[place] + crossings[place + 1]))


@njit(cache=True, nogil=True)
def _walk(crossings, walk, signs, starts, partners, costs):  # type: ignore[no-untyped-def]
    """After which crossing the sum of costs is least, −1 for none; equal crossings are one."""
    value, best, place = 0.0, 0.0, -1
    for p in range(len(walk)):
        value += _flip(walk[p], signs, starts, partners, costs)
        if value < best and (p + 1 == len(walk) or crossings[p + 1] > crossings[p]):
            best, place = value, p
    return place


@njit(cache=True, nogil=True)
def _change(signs, wanted, starts, partners, costs):  # type: ignore[no-untyped-def]
    """What going from ``signs`` to ``wanted`` adds to the sum of costs."""
    change = 0.0
    now = signs.copy()
    for i in range(len(now)):
        if now[i] != wanted[i]:
            change += _flip(i, now, starts, partners, costs)
    return change


@njit(cache=True, nogil=True)
def _flip(i, signs, starts, partners, costs):  # type: ignore[no-untyped-def]
    """Turn the sign of sample i; what that adds to the costs of its pairs, which count where signs differ."""
    change = 0.0
    for e in range(starts[i], starts[i + 1]):
        change += costs[e] * signs[partners[e]]
    change *= signs[i]
    signs[i] = -signs[i]
    return change
