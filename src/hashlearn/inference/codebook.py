"""Codewords that keep apart: among codebooks of (nearly) equal objective (3), the one with the fewest near pairs.

If samples of one class share one code, objective (3) depends only on the codewords of the K classes. Many codebooks
reach the same objective, and their retrieval differs by several points of precision, because some have more codewords
near each other than others. Simulated annealing over single flips of the K × n_bits codebook looks for fewer near pairs
at an objective that is not higher. If classes differ in size, ties are rare and the optimum puts the small classes
close together; then a codebook that weighs all classes equally may replace it (docs/quality.md). O(K) a flip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from hashlearn import bqp
from hashlearn.bqp.merging import merge_identical_rows
from hashlearn.bqp.rows import Tall, rows_of
from hashlearn.core.arrays import FloatArray
from hashlearn.inference.objective import objective

RESTARTS = 4
FLIPS_PER_ENTRY = 250
MAX_WORK = 1e9  # flips × K, in all
NEARNESS_WEIGHT = 1e-3  # weight of near pairs, relative to the objective, while annealing
NEAR_EQUAL = 0.5  # the objective may rise by this share if classes differ in size
MOST_WORDS = 3000  # more codewords would need K × K arrays of over 70 MB
COOL = 0.2  # the first temperature, in units of the mean change of the objective by one flip


def spread_codewords(target: bqp.Operator, codes: Any, rng: np.random.Generator) -> Any:
    """Codes whose codewords keep farther apart, or ``codes`` itself if nothing better is found.

    The objective does not rise; if classes differ in size, it may rise by half. Samples that the target does not tell
    apart first get the signs of their majority. More than `MOST_WORDS` codewords are left as they are.
    """
    groups = groups_of_rows(target)
    if groups is None:
        return codes
    _, first, counts = np.unique(groups, return_index=True, return_counts=True)
    if not 2 <= len(first) <= MOST_WORDS:
        return codes
    rows = rows_of(codes)
    given = rows.to_host()
    words = np.stack([Tall().group_signs(column, groups, len(first)) for column in given.T], axis=1)
    Y, shares = target.restricted(first).toarray(), counts / counts.sum()
    found = _anneal_all(words, Y, shares, rng)
    if np.array_equal(words[groups], given):
        return codes if found is words else rows.from_numpy(found[groups])
    limit = (1.0 + NEAR_EQUAL * _differ(shares)) * objective(target, codes)
    return rows.from_numpy(found[groups]) if _class_objective(found, Y, shares) <= limit else codes


def nearness(words: FloatArray) -> float:
    """Σ exp(−distance) over pairs of codewords: dominated by the nearest.

    >>> round(nearness(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])), 6)
    0.871094
    """
    distances = 0.5 * (words.shape[1] - words @ words.T)
    return float(np.exp(-distances[np.triu_indices(len(words), 1)]).sum())


def groups_of_rows(target: bqp.Operator) -> np.ndarray | None:
    """For each sample the number of the row of Y it shares; None unless the target is low rank with few rows."""
    if not target.is_low_rank or target.rank == 0:
        return None
    negated = bqp.LowRank(target.P, -np.abs(target.weights))  # so that merging has no reason to keep rows apart
    merged = merge_identical_rows(negated)
    if merged.groups is None or merged.operator.n > target.n // 2:
        return None
    return target.rows.to_numpy(merged.groups).astype(np.intp)


def _differ(shares: FloatArray) -> bool:
    return bool(np.ptp(shares) > 1e-12)


def _anneal_all(words: FloatArray, Y: FloatArray, shares: FloatArray, rng: np.random.Generator) -> FloatArray:
    K, n_bits = words.shape
    flips = int(min(FLIPS_PER_ENTRY * K * n_bits, MAX_WORK / K / RESTARTS))
    near = np.exp(-np.arange(n_bits + 1.0))
    best = words
    best_objective, best_nearness = _class_objective(words, Y, shares), nearness(words)
    slack = 1e-12 * max(best_objective, 1e-12)
    for _ in range(RESTARTS):
        trial = _anneal(words.copy(), n_bits * Y, shares, near, NEARNESS_WEIGHT, COOL, flips, rng)
        value, closeness = _class_objective(trial, Y, shares), nearness(trial)
        if value < best_objective - slack or (value <= best_objective + slack and closeness < best_nearness):
            best, best_objective, best_nearness = trial, value, closeness
    if not _differ(shares):
        return best
    limit, alike = (1.0 + NEAR_EQUAL) * best_objective, np.full(K, 1.0 / K)
    for _ in range(RESTARTS):
        trial = _anneal(best.copy(), n_bits * Y, alike, near, NEARNESS_WEIGHT, COOL, flips, rng)
        if _class_objective(trial, Y, shares) <= limit and nearness(trial) < best_nearness:
            best, best_nearness = trial, nearness(trial)
    return best


def _class_objective(words: FloatArray, Y: FloatArray, shares: FloatArray) -> float:
    error = words @ words.T / words.shape[1] - Y
    return float(shares @ (error * error) @ shares)


@njit(cache=True, nogil=True)
def _anneal(words, Y, shares, near, nearness_weight, cool, flips, rng):  # type: ignore[no-untyped-def]
    """Single flips under a falling temperature; returns the best codebook met. Y comes multiplied by n_bits."""
    K, n_bits = words.shape
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
        change = objective + nearness_weight * closeness * np.exp(3.0)
        typical += (abs(objective) - typical) / (step + 1.0)
        temperature = cool * typical * (1.0 - step / flips)
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
