"""What the norms of a Chebyshev recurrence say about the smallest eigenvalue: see `hashlearn.bqp.sdr.chebyshev`.

NumPy alone, so that the test on a device shares it.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from hashlearn.core.arrays import FloatArray

# One relaxation makes this many of these tests at most, and one solve at most eight relaxations. Each restart of a
# test draws new vectors, and any of them may be the last. Together they fail with probability 1e-9 at most.
MOST_TESTS = 128
MOST_RESTARTS = 3  # of a test that began with too low an estimate of the largest eigenvalue
FAILURE_PROBABILITY = 1e-9 / (8 * MOST_TESTS * MOST_RESTARTS)
COLUMNS = 8  # random starts: one cache line for each row
LEAST_METRIC = 1e-3  # entries of d are raised to this fraction of their mean
LEAST_STEPS, MOST_STEPS = 30, 20_000
LARGEST_GROWTH = 1e8  # a recurrence stops here, as the test has failed


def steps_for(n: int, growth: float) -> int:
    """Steps after which an eigenvalue at 1 + ``growth`` beyond [−1, 1] would have been seen."""
    steps = np.log(2.0 * np.sqrt(n) / _component()) / np.sqrt(2.0 * max(growth, 1e-12))
    return int(min(max(steps + 2.0, LEAST_STEPS), MOST_STEPS))


def restarted_top(quotient: float, size: float) -> float:
    """The next estimate of the largest eigenvalue, from a Rayleigh quotient of vectors that have grown there."""
    return min(quotient + 1e-3 * size, size)


def _component() -> float:
    """t: all |uᵀb| are below it with probability `FAILURE_PROBABILITY`, since P(|g| ≤ t) = 2Φ(t) − 1."""
    return NormalDist().inv_cdf(0.5 * (1.0 + FAILURE_PROBABILITY ** (1.0 / COLUMNS)))


def growth_bound(norm: float, errors: FloatArray) -> float:
    """The largest δ for which an eigenvalue at 1 + δ beyond [−1, 1] could have left ``norm``; inf: any δ could.

    ``errors`` bounds the local errors of all steps. The result belongs to the root of
    norm / T_k(cosh θ) + Σ_j errors_j · |U_{k−1−j}| / T_k = t, with T_k ≥ ½ e^{kθ}.
    """
    t, steps = _component(), len(errors)
    j = np.arange(steps)

    def possible(theta: float) -> bool:
        grown = 2.0 * norm * np.exp(-min(steps * theta, 700.0))
        quotients = np.exp(-np.minimum(j * theta, 700.0)) * np.minimum(1.0 / np.sinh(theta), 2.0 * (steps - j))
        return bool(grown + errors @ quotients >= t)

    low, high = 0.0, 20.0
    if possible(high):
        return np.inf
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if possible(middle) else (low, middle)
    return float(2.0 * np.sinh(0.5 * high) ** 2)
