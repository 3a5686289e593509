"""The test behind a promise such as "recall is at least 0.95, at 99 % confidence". It is valid for any sample size.

We bet against "the mean is below the claim". Start with 1; each value x multiplies the stake by 1 + bet · (x − claim).
If the mean is below the claim, the stake does not grow on average, so it ends above 1 / (1 − confidence) with
probability 1 − confidence at most (Markov). Nothing is assumed of the values but that they lie in [0, 1], are drawn
independently, and that the bet was fixed before they were looked at.

The size of the bet decides how soon a true claim is accepted, never whether a false one is refused. `best_bet` takes
the bet that grows most on other values, those that the choices were made on. Its growth depends on the
variance, so codes that rarely miss need few queries; Hoeffding's inequality knows the range only.

Reference: I. Waudby-Smith, A. Ramdas: Estimating means of bounded random variables by betting. JRSS B, 2024. A. N.
Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan, L. Lei: Learn then test. Annals of Applied Statistics, 2025.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import require_share

LARGEST_BET = 0.98  # of the bet that a value of 0 would ruin
ZEROS_ADDED = 0.1  # values of 0 that are added to those that a bet is fitted to, since worse values may come
SPREAD = np.geomspace(0.03, LARGEST_BET, 16)  # where nothing is known: these sizes, each with the same share
TABLE_SHARE = 0.1  # of the error, for all codes that could be tried; the finalists share the rest
TINY_CLAIM = 1e-9  # bets on a smaller claim are those on this one, so that they stay finite
LARGEST_CONFIDENCE = 1.0 - 1e-9  # many statements share the rest, which floats near 1 must still tell apart


def require_confidence(confidence: Any) -> None:
    """Refuse what is not a number above 0 and at most 1 − 1e-9.

    >>> require_confidence(1.0 - 1e-12)
    Traceback (most recent call last):
        ...
    ValueError: confidence must be at most 1 - 1e-9, got 0.999999999999
    """
    require_share(confidence, "confidence")
    if confidence > LARGEST_CONFIDENCE:
        raise ValueError(f"confidence must be at most 1 - 1e-9, got {confidence!r}")


def shared(confidence: float, n: int, share: float = 1.0) -> float:
    """The confidence of each of n statements that hold together with this share of the error (Bonferroni)."""
    return 1.0 - share * (1.0 - confidence) / n


def accepts(values: Any, claim: float, bets: Any, confidence: float, counts: Any = None) -> bool:
    """Whether the values show that their mean is at least the claim. ``counts``: how often each value occurs.

    >>> accepts(np.ones(100), 0.95, 1.0, confidence=0.99), accepts(np.ones(80), 0.95, 1.0, confidence=0.99)
    (True, False)
    """
    return log_stake(values, claim, bets, counts) >= -math.log1p(-confidence)


def log_stake(values: Any, claim: float, bets: Any, counts: Any = None) -> float:
    """Logarithm of the stake at the end. With several bets, each gets the same share of the stake."""
    bets = np.atleast_1d(np.asarray(bets, np.float64))
    values = np.asarray(values, np.float64)
    if counts is None:
        values, counts = np.unique(values, return_counts=True)
    growth = np.log1p(np.multiply.outer(bets, values - claim)) @ counts
    return float(np.logaddexp.reduce(growth) - math.log(len(bets)))


def best_bet(values: Any, claim: float, n: int) -> float:
    """The bet that grows most on n values like these and a tenth of a 0; 0 if their mean is below the claim.

    >>> best_bet([1.0, 0.9] * 50, 0.7, n=400) > best_bet([1.0, 0.5] * 50, 0.7, n=400) > 0
    True
    """
    values = np.asarray(values, np.float64)

    def loss(bet: float) -> float:
        return -n / len(values) * log_stake(values, claim, bet) - ZEROS_ADDED * math.log1p(-bet * claim)

    found = minimize_scalar(loss, bounds=(0.0, LARGEST_BET / max(claim, TINY_CLAIM)), method="bounded")
    return float(found.x) if found.fun < 0.0 else 0.0  # a bet of 0 neither grows nor shrinks


def lower_bound(values: Any, bets: Any, confidence: float, most: float = 1.0) -> float:
    """The largest claim up to ``most`` that `accepts` accepts, to 1e-6. ``bets`` must be below 1 / most.

    >>> 0.95 < lower_bound(np.ones(100), 0.98, confidence=0.99) < 0.96
    True
    """
    below, above = 0.0, most
    while above - below > 1e-6:
        middle = 0.5 * (below + above)
        if accepts(values, middle, bets, confidence):
            below = middle
        else:
            above = middle
    return below


def refutes(values: Any, claim: float, confidence: float) -> bool:
    """Whether the values show that their mean is below the claim: `accepts` for 1 − values.

    >>> refutes([1.0, 0.5] * 100, 0.95, confidence=0.99), refutes([1.0, 0.9] * 100, 0.95, confidence=0.99)
    (True, False)
    """
    losses = 1.0 - np.asarray(values, np.float64)
    return accepts(losses, 1.0 - claim, spread_of_bets(1.0 - claim), confidence)


def spread_of_bets(claim: float) -> FloatArray:
    """Bets on a claim where nothing is known about the values."""
    return SPREAD / max(claim, TINY_CLAIM)


def fewest_values(claim: float, confidence: float) -> int:
    """How many values of 1 it takes until the claim can be accepted.

    >>> fewest_values(0.95, 0.99), fewest_values(0.99, 0.99)
    (92, 468)
    """
    return math.ceil(-math.log1p(-confidence) / math.log1p(LARGEST_BET / max(claim, TINY_CLAIM) * (1.0 - claim)))
