"""Which class gets which codeword: classes that are easily confused get codewords that are near each other.

Objective (3) only distinguishes "same class" from "another class". With classes of equal size it is the same for every
permutation of codewords, but retrieval is not. A sample between two classes gets a code between their codewords; if
these are near each other, it still finds samples of either class. The opposite, confused classes far apart, loses as
much (docs/quality.md). Confusions come from leave-one-out kernel regression on the training samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.fitted import working_rows
from hashlearn.hash_functions.kernel_ridge import leave_one_out_errors
from hashlearn.hash_functions.kernels import RBFPoints, choose_gamma

MOST_ROWS = 2000  # rows used to estimate confusions
ALPHA = 0.1
RESTARTS = 20
MAX_WORK = 2e9  # multiplications of all restarts together
MOST_CHANGE = 0.01  # relative increase of the objective that is allowed if classes differ in size


def arranged(X: Any, labels: NDArray[Any], codes: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
    """``codes`` with codewords assigned to classes by confusions; unchanged if a class has more than one codeword."""
    classes, first, member = np.unique(labels, return_index=True, return_inverse=True)
    words = codes[first].astype(np.float64)
    if len(classes) < 3 or not np.array_equal(codes[first][member], codes):
        return codes
    shares = np.bincount(member) / len(member)
    order = best_order(words, confusions(X, member, rng), shares, rng)
    return codes[first][order][member]


def confusions(X: Any, member: NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
    """Symmetric (n_classes, n_classes): how much of one class's leave-one-out score goes to the other; diagonal 0.

    Scores come from regression on class indicators; the score of a sample is the one with that sample left out.
    """
    X = working_rows(X)
    n = len(member)
    rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    X, member, n_classes = X[rows], member[rows], int(member.max()) + 1
    with one_blas_thread():
        gamma, _ = choose_gamma("neighbors", X, rng)
        told = np.zeros((len(rows), n_classes))
        told[np.arange(len(rows)), member] = 1.0
        scores = told - leave_one_out_errors(RBFPoints(X, gamma).gram(), told, ALPHA)
        mixed = told.T @ np.maximum(scores, 0.0) / np.maximum(np.bincount(member, minlength=n_classes), 1)[:, None]
    mixed = mixed + mixed.T
    np.fill_diagonal(mixed, 0.0)
    return mixed


def best_order(
    words: FloatArray, confused: FloatArray, shares: FloatArray, rng: np.random.Generator
) -> NDArray[np.intp]:
    """The codeword of each class, by swaps that lower Σ confused · distance; objective (3) may rise by `MOST_CHANGE`.

    >>> words = np.array([[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [1.0, 1.0, -1.0]])
    >>> confused = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> order = best_order(words, confused, np.full(3, 1 / 3), np.random.default_rng(0))
    >>> int(words[order[0]] @ words[order[1]])  # the nearest pair, one bit apart
    1
    """
    count = len(words)
    distances = 0.5 * (words.shape[1] - words @ words.T)
    sizes = np.multiply.outer(shares, shares)
    wanted = (words @ words.T / words.shape[1] + 1.0) ** 2  # (zᵀz'/L − Y)² between two classes, Y = −1
    best, allowed = np.arange(count), (1.0 + MOST_CHANGE) * _total(sizes, wanted, np.arange(count)) + 1e-12
    best_value = _total(confused, distances, best)
    for trial in range(max(1, min(RESTARTS, int(MAX_WORK / count**3)))):
        order = best.copy() if trial == 0 else rng.permutation(count)
        _descend(confused, distances, order, max(1, int(MAX_WORK / RESTARTS / count**3)))
        value = _total(confused, distances, order)
        if value < best_value and _total(sizes, wanted, order) <= allowed:
            best, best_value = order, value
    return best


def _total(weights: FloatArray, values: FloatArray, order: NDArray[np.intp]) -> float:
    off = weights * values[np.ix_(order, order)]
    return float(off.sum() - np.trace(off))


@njit(cache=True, nogil=True)
def _descend(weights, values, order, passes):  # type: ignore[no-untyped-def]
    """Swap pairs while that lowers the sum; O(n_classes) for each pair."""
    count = len(order)
    for _ in range(passes):
        changed = False
        for a in range(count):
            for b in range(a):
                i, j = order[a], order[b]
                change = 0.0
                for c in range(count):
                    if c != a and c != b:
                        k = order[c]
                        change += (weights[a, c] - weights[b, c]) * (values[j, k] - values[i, k])
                if change < -1e-12:
                    order[a], order[b] = j, i
                    changed = True
        if not changed:
            break
