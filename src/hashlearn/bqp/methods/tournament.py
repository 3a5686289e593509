"""Tournament trees for tabu search: the largest of n numbers, of which one changes at a time. O(log n) a change.

A tree is an array. Node q holds the larger of its children 2q and 2q + 1, and the second half of the array holds the
numbers themselves. The compiled functions also draw the random numbers that break ties.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hashlearn.core.arrays import FloatArray


def tournament(numbers: FloatArray) -> FloatArray:
    """The tree of these numbers, padded with −inf."""
    half = 1 << max(1, int(np.ceil(np.log2(len(numbers)))))
    tree = np.full(2 * half, -np.inf)
    tree[half : half + len(numbers)] = numbers
    while half > 1:
        leaves = tree[half : 2 * half]
        half //= 2
        tree[half : 2 * half] = np.maximum(leaves[0::2], leaves[1::2])
    return tree


@njit(cache=True, nogil=True)
def enter(tree, i, value):  # type: ignore[no-untyped-def]
    """Set number i, and the nodes above it as far as they change."""
    q = tree.shape[0] // 2 + i
    tree[q] = value
    while q > 1:
        q >>= 1
        larger = max(tree[2 * q], tree[2 * q + 1])
        if tree[q] == larger:
            return
        tree[q] = larger


@njit(cache=True, nogil=True)
def winner(tree, random):  # type: ignore[no-untyped-def]
    """The index of a largest number; a random bit decides at each tie."""
    coins = draw(random)
    half = tree.shape[0] // 2
    q = 1
    while q < half:
        left, right = tree[2 * q], tree[2 * q + 1]
        q *= 2
        if right > left or (right == left and coins >> np.uint64(63) == np.uint64(1)):
            q += 1
        coins <<= np.uint64(1)
    return q - half


@njit(cache=True, nogil=True)
def draw(random):  # type: ignore[no-untyped-def]
    """The next 64 random bits (a 64-bit xorshift, then a multiplication)."""
    s = random[0]
    s ^= s >> np.uint64(12)
    s ^= s << np.uint64(25)
    s ^= s >> np.uint64(27)
    random[0] = s
    return s * np.uint64(2685821657736338717)


@njit(cache=True, nogil=True)
def below(random, n):  # type: ignore[no-untyped-def]
    """A random integer from 0 to n − 1."""
    return np.int64((draw(random) >> np.uint64(33)) % np.uint64(n))
