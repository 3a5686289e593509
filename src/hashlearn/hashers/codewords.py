"""Which codeword each group of rows gets, after inference: objective (3) leaves choices that matter to retrieval.

Many codebooks reach nearly the same objective, and some have more codewords near each other than others. Simulated
annealing over single flips of the codebook looks for fewer near pairs at an objective that is not higher. If groups
differ in size, ties are rare, and the optimum puts the small groups close together. Then a codebook that weighs all
groups equally may replace it (docs/quality.md). O(K) a flip.

Between classes, objective (3) only distinguishes "same class" from "another class", so with classes of equal size every
permutation of the codewords is as good. Retrieval is better if classes that are easily confused get codewords near each
other: a sample between two classes gets a code between their codewords, and still finds samples of either class.
Confusions come from leave-one-out kernel regression on the training samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hashlearn.core.arrays import FloatArray
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions.fitted import working_rows
from hashlearn.hash_functions.kernel_methods import leave_one_out_errors
from hashlearn.hash_functions.kernels import RBFPoints, choose_gamma
from hashlearn.targets import Groups

# Spread: balls of radius 2 around codewords at least this far apart do not overlap, and then nothing is gained.
FAR_ENOUGH = 5
SPREAD_RESTARTS = 4
FLIPS_PER_ENTRY = 250
MOST_SPREAD_WORK = 1e9  # flips × K, in all
NEARNESS_WEIGHT = 1e-3  # weight of near pairs, relative to the objective, while annealing
NEAR_EQUAL = 0.5  # the objective may rise by this share if groups differ in size
COOL = 0.2  # the first temperature, in units of the mean change of the objective by one flip

# Arrangement.
MOST_ROWS = 2000  # rows used to estimate confusions
ALPHA = 0.1
RESTARTS = 20
MAX_WORK = 2e9  # multiplications of all restarts together
MOST_CHANGE = 0.01  # relative increase of the objective that is allowed if classes differ in size


def spread_codewords(words: FloatArray, groups: Groups, rng: np.random.Generator) -> FloatArray:
    """Codewords that keep farther apart, or ``words`` itself if they are far enough or nothing better is found.

    The objective does not rise; if groups differ in size, it may rise by half.
    """
    K, n_bits = words.shape
    distances = 0.5 * (n_bits - words @ words.T)
    is_far = distances[groups.similarity < 0.0].min(initial=n_bits) >= FAR_ENOUGH
    if is_far or len(groups.member) < 2 * K:  # most groups are single rows, whose codes may be near
        return words
    flips = int(min(FLIPS_PER_ENTRY * K * n_bits, MOST_SPREAD_WORK / K / SPREAD_RESTARTS))

    def annealed(start: FloatArray, shares: FloatArray) -> tuple[FloatArray, float, float]:
        trial = _anneal(start.copy(), n_bits * groups.similarity, shares, flips, rng)
        return trial, groups.objective(trial), nearness(trial)

    best, best_objective, best_nearness = words, groups.objective(words), nearness(words)
    slack = 1e-12 * max(best_objective, 1e-12)
    for _ in range(SPREAD_RESTARTS):
        trial, value, closeness = annealed(words, groups.shares)
        if value < best_objective - slack or (value <= best_objective + slack and closeness < best_nearness):
            best, best_objective, best_nearness = trial, value, closeness
    if np.ptp(groups.shares) <= 1e-12:
        return best
    limit = (1.0 + NEAR_EQUAL) * best_objective
    for _ in range(SPREAD_RESTARTS):
        trial, value, closeness = annealed(best, np.full(K, 1.0 / K))
        if value <= limit and closeness < best_nearness:
            best, best_nearness = trial, closeness
    return best


def nearness(words: FloatArray) -> float:
    """Σ exp(−distance) over pairs of codewords: dominated by the nearest.

    >>> round(nearness(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])), 6)
    0.871094
    """
    distances = 0.5 * (words.shape[1] - words @ words.T)
    return float(np.exp(-distances[np.triu_indices(len(words), 1)]).sum())


def arranged(words: FloatArray, groups: Groups, X: Any, rng: np.random.Generator) -> FloatArray:
    """The codewords in the order that suits the confusions of classes; unchanged if groups are no classes."""
    if len(words) < 3 or not groups.are_classes:
        return words
    return words[best_order(words, confusions(X, groups.member, rng), groups.shares, rng)]


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
        one_hot = np.eye(n_classes)[member]
        scores = one_hot - leave_one_out_errors(RBFPoints(X, gamma).gram(), one_hot, ALPHA)
        mixed = one_hot.T @ np.maximum(scores, 0.0) / np.maximum(np.bincount(member, minlength=n_classes), 1)[:, None]
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
    errors = (words @ words.T / words.shape[1] + 1.0) ** 2  # (zᵀz'/L − Y)² between two classes, Y = −1
    best, allowed = np.arange(count), (1.0 + MOST_CHANGE) * _total(sizes, errors, np.arange(count)) + 1e-12
    best_value = _total(confused, distances, best)
    for trial in range(max(1, min(RESTARTS, int(MAX_WORK / count**3)))):
        order = best.copy() if trial == 0 else rng.permutation(count)
        _descend(confused, distances, order, max(1, int(MAX_WORK / RESTARTS / count**3)))
        value = _total(confused, distances, order)
        if value < best_value and _total(sizes, errors, order) <= allowed:
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


@njit(cache=True, nogil=True)
def _anneal(words, Y, shares, flips, rng):  # type: ignore[no-untyped-def]
    """Single flips under a falling temperature; returns the best codebook met. Y comes multiplied by n_bits."""
    K, n_bits = words.shape
    near = np.exp(-np.arange(n_bits + 1.0))
    products = words @ words.T
    scale = 1.0 / (n_bits * n_bits)
    best = words.copy()
    now = 0.0
    best_value = 0.0
    typical = 0.0
    for step in range(flips):
        a, bit = rng.integers(0, K), rng.integers(0, n_bits)
        objective = 0.0
        closeness = 0.0
        for b in range(K):
            if b == a:
                continue
            old = products[a, b]
            new = old - 2.0 * words[a, bit] * words[b, bit]
            # ((new − Y)² − (old − Y)²) = (new − old)(new + old − 2Y)
            objective += 2.0 * shares[a] * shares[b] * scale * (new - old) * (new + old - 2.0 * Y[a, b])
            closeness += near[int(0.5 * (n_bits - new) + 0.5)] - near[int(0.5 * (n_bits - old) + 0.5)]
        change = objective + NEARNESS_WEIGHT * closeness * np.exp(3.0)
        typical += (abs(objective) - typical) / (step + 1.0)
        temperature = COOL * typical * (1.0 - step / flips)
        if change <= 0.0 or rng.random() < np.exp(-change / max(temperature, 1e-300)):
            for b in range(K):
                if b != a:
                    products[a, b] -= 2.0 * words[a, bit] * words[b, bit]
                    products[b, a] = products[a, b]
            words[a, bit] = -words[a, bit]
            now += change
            if now < best_value - 1e-12:
                best_value = now
                best[:] = words
    return best
