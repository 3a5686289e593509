"""How well codes use their bits, without queries or labels: balance, correlation, entropy, collisions.

O(n · n_bits²) time for the correlations, O(n_bits²) memory and one block of unpacked rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hashlearn.bits import as_words, packed_codes, unpack_bits
from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import one_blas_thread, sum_row_blocks


@dataclass(frozen=True, eq=False)
class BitStatistics:
    """The result of `bit_statistics`."""

    n_samples: int
    n_bits: int
    balance: FloatArray  # fraction of ones, for each bit; 1/2 is best
    bit_entropy: FloatArray  # entropy of each bit alone, in bits, from 0 to 1
    code_entropy: float  # entropy of the distribution of whole codes, in bits, at most log2(n_samples) and n_bits
    max_correlation: float  # largest |correlation| of two bits; 0 with fewer than two bits that vary
    mean_correlation: float  # mean |correlation| over all pairs of bits that vary
    n_constant: int  # bits that never vary; they have no correlation and do not enter the two numbers above
    n_distinct: int  # distinct codes
    n_collisions: int  # pairs of samples with equal codes
    collision_rate: float  # these pairs as a fraction of all pairs


def bit_statistics(codes: Any, n_bits: int) -> BitStatistics:
    """Balance, correlation, entropy and collisions of packed codes.

    >>> codes = np.array([[0b00000000], [0b01000000], [0b10000000], [0b11000000]], np.uint8)
    >>> statistics = bit_statistics(codes, n_bits=2)
    >>> statistics.balance, statistics.code_entropy, statistics.max_correlation, statistics.n_collisions
    (array([0.5, 0.5]), 2.0, 0.0, 0)
    """
    codes = packed_codes(codes, "codes", n_bits)
    n = len(codes)
    if n == 0:
        raise ValueError(f"codes is empty (shape {codes.shape}); at least one code is needed")

    def gram(first: int, last: int) -> FloatArray:
        bits = unpack_bits(codes[first:last], n_bits).astype(np.float64)
        return bits.T @ bits

    with one_blas_thread():
        both = sum_row_blocks(gram, n)  # integers, so the sums are exact in any order
    balance = both.diagonal() / n
    correlation = _absolute_correlation(both, n)
    counts = _code_counts(codes)
    pairs = n * (n - 1) // 2
    collisions = int(np.sum(counts * (counts - 1) // 2))
    return BitStatistics(
        n_samples=n,
        n_bits=int(n_bits),
        balance=balance,
        bit_entropy=_entropy(balance) + _entropy(1.0 - balance),
        code_entropy=float(_entropy(counts / n).sum()),
        max_correlation=float(correlation.max(initial=0.0)),
        mean_correlation=float(correlation.mean()) if correlation.size else 0.0,
        n_constant=int(np.sum((balance == 0.0) | (balance == 1.0))),
        n_distinct=len(counts),
        n_collisions=collisions,
        collision_rate=collisions / pairs if pairs else 0.0,
    )


def _absolute_correlation(both: FloatArray, n: int) -> FloatArray:
    """|correlation| of every pair of bits that vary; ``both[i, j]`` samples have bits i and j set."""
    ones = both.diagonal()
    varies = (ones > 0) & (ones < n)
    both, ones = both[np.ix_(varies, varies)], ones[varies]
    covariance = n * both - np.outer(ones, ones)
    spread = np.sqrt(ones * (n - ones))
    upper = np.triu_indices(len(ones), 1)
    correlations: FloatArray = np.abs(covariance[upper]) / (spread[upper[0]] * spread[upper[1]])
    return np.minimum(correlations, 1.0)


def _code_counts(codes: np.ndarray) -> np.ndarray:
    """How many samples have each of the distinct codes."""
    words = as_words(codes)
    flat = words[:, 0] if words.shape[1] == 1 else words.view(np.dtype((np.void, 8 * words.shape[1])))[:, 0]
    return np.unique(flat, return_counts=True)[1].astype(np.int64)


def _entropy(p: FloatArray) -> FloatArray:
    """−p log2 p, 0 at p = 0."""
    return -p * np.log2(np.where(p > 0.0, p, 1.0)) + 0.0
