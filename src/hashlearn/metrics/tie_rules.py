"""Tie rules: sums of precisions and numbers of hits for items at equal distance, from counts alone.

Let N items, R of them relevant, lie nearer than a distance with n items, r of them relevant. If the order inside the
distance is random, place t holds a relevant item with probability r/n. Then R + 1 + (t − 1) q relevant items are
expected up to that place, q = (r − 1)/(n − 1). The expected sum of precisions at the relevant items of this distance is

    (r/n) Σ_t (R + 1 + (t − 1) q) / (N + t)  =  (r/n) [ (R + 1) h + q (n − (N + 1) h) ],   h = H(N + n) − H(N)

with harmonic numbers H. We store H in two doubles, so that differences stay exact. The cost is O(n_bits) for each
query. Only the top-k convention needs a sum over the possible numbers of hits at the distance of rank k.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hashlearn.core.arrays import FloatArray, IntArray


def expected_hits(retrieved: IntArray, relevant: IntArray, k: int) -> FloatArray:
    """Expected number of relevant items among the first k, for each query.

    >>> expected_hits(np.array([[1, 4]]), np.array([[1, 2]]), 3)
    array([2.])
    """
    hits: FloatArray = (chances(retrieved, k) * relevant).sum(axis=1)
    return hits


def chances(retrieved: IntArray, k: int) -> FloatArray:
    """Probability of an item to be among the first k, for each query and each distance."""
    nearer = retrieved.cumsum(axis=1) - retrieved
    return np.clip(k - nearer, 0, retrieved) / np.maximum(retrieved, 1)


@njit(cache=True, nogil=True)
def harmonic_numbers(n):  # type: ignore[no-untyped-def]
    """H(0), …, H(n) as the sum of two rows; the second row holds the rounding errors of the first."""
    out = np.zeros((2, n + 1))
    high, low = 0.0, 0.0
    for t in range(1, n + 1):
        term = 1.0 / t
        total = high + term
        low += term - (total - high)  # exact: high ≥ term from t = 1 on
        high = total
        out[0, t], out[1, t] = high, low
    return out


@njit(cache=True, nogil=True)
def expected_sums(retrieved, relevant, top_k, harmonic):  # type: ignore[no-untyped-def]
    """For each query, over the relevant items among the first ``top_k``: the expected Σ of the precision at the item
    and Σ of the precision one rank before it (1 before the first rank).

    One relevant and one other item at the same distance: rank 1 or 2 with equal chance, so (1/1 + 1/2)/2.

    >>> expected_sums(np.array([[2]]), np.array([[1]]), 2, harmonic_numbers(2))
    (array([0.75]), array([0.5]))
    """
    n_queries, n_distances = retrieved.shape
    at, before = np.zeros(n_queries), np.zeros(n_queries)
    for i in range(n_queries):
        N, R = 0, 0
        for d in range(n_distances):
            n, r = retrieved[i, d], relevant[i, d]
            here = _random_order(R, N, n, r, min(n, top_k - N), harmonic)
            at[i] += here[0]
            before[i] += here[1]
            N, R = N + n, R + r
            if top_k <= N:
                break
    return at, before


@njit(cache=True, nogil=True)
def expected_top_k_average(retrieved, relevant, top_k, harmonic):  # type: ignore[no-untyped-def]
    """E[Σ of precisions at the hits in the first ``top_k`` / number of these hits]; 0 for none.

    Only the distance of rank ``top_k`` has a random number of hits. The number is hypergeometric, and given the number,
    the hits lie at random among the remaining places.
    """
    n_queries, n_distances = retrieved.shape
    out = np.zeros(n_queries)
    for i in range(n_queries):
        N, R, total = 0, 0, 0.0
        for d in range(n_distances):
            n, r = retrieved[i, d], relevant[i, d]
            if N + n > top_k:
                out[i] = _expected_ratio(total, R, N, n, r, top_k - N, harmonic)
                break
            total += _random_order(R, N, n, r, n, harmonic)[0]
            N, R = N + n, R + r
            if top_k == N:
                out[i] = total / R if R > 0 else 0.0
                break
    return out


@njit(cache=True, nogil=True)
def _expected_ratio(total, R, N, n, r, m, harmonic):  # type: ignore[no-untyped-def]
    """Σ_h P(h hits among the m places) · (total + their expected sum) / (R + h)."""
    h = np.arange(max(0, m - (n - r)), min(m, r) + 1)
    logarithms = np.zeros(len(h))
    logarithms[1:] = np.cumsum(np.log((r - h[:-1]) * (m - h[:-1]) / (h[1:] * (n - r - m + h[1:]))))
    shares = np.exp(logarithms - logarithms.max())
    shares /= shares.sum()
    value = 0.0
    for i in range(len(h)):
        if R + h[i] > 0:
            value += shares[i] * (total + _random_order(R, N, m, h[i], m, harmonic)[0]) / (R + h[i])
    return value


@njit(cache=True, nogil=True)
def _random_order(R, N, n, r, places, harmonic):  # type: ignore[no-untyped-def]
    """Expected sums of precisions at and before the relevant items in the first ``places`` of a distance."""
    if r == 0 or places == 0:
        return 0.0, 0.0
    q = (r - 1) / (n - 1) if n > 1 else 0.0
    h = _harmonic_difference(N, N + places, harmonic)
    at = (R + 1) * h + q * (places - (N + 1) * h)
    if N > 0:
        before = q * places + (R - q * N) * _harmonic_difference(N - 1, N + places - 1, harmonic)
    else:
        before = 1.0 + q * (places - 1)
    return at * r / n, before * r / n


@njit(cache=True, nogil=True)
def _harmonic_difference(a, b, harmonic):  # type: ignore[no-untyped-def]
    """H(b) − H(a)."""
    return (harmonic[0, b] - harmonic[0, a]) + (harmonic[1, b] - harmonic[1, a])
