"""``"cv"``: γ and the strength (C or alpha) by accuracy on held-out rows.

At most 1,500 rows and 4 distinct bits are drawn, a third of the rows is held out, and every point of a small grid
around the defaults is fitted on the rest: γ times 1/64 … 64, the strength times 1/10, 1, 10. The best mean accuracy
wins; among equals the one nearest the defaults. A parameter that is a number or a rule stays as it is. Fewer than
20 rows: the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.kernels import RBFPoints

GAMMA_FACTORS = (1.0, 0.25, 4.0, 1 / 16, 16.0, 1 / 64, 64.0)
STRENGTH_FACTORS = (1.0, 10.0, 0.1)
MOST_ROWS = 1500
MOST_BITS = 4
FEWEST_ROWS = 20

# (Gram of training rows, their codes, kernel of held-out × training rows, strength) → margins of held-out rows
Trial: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.int8], NDArray[np.float64], float], NDArray[np.float64]]


class Choice(NamedTuple):
    """What was selected, and its held-out accuracy."""

    gamma: float
    strength: float
    accuracy: float


def select_on_held_out_rows(
    X: Rows,
    codes: NDArray[np.int8],
    gammas: Sequence[float],
    strengths: Sequence[float],
    trial: Trial,
    rng: np.random.Generator,
) -> Choice | None:
    """The best pair; candidates come with the default first. None where there is too little to choose by."""
    n = X.shape[0]
    if n < FEWEST_ROWS or codes.shape[1] == 0:
        return None
    rows = rng.permutation(n)[:MOST_ROWS]
    bits = np.sort(rng.permutation(codes.shape[1])[:MOST_BITS])
    held, train = np.split(rows, [len(rows) // 3])
    y, y_held = codes[np.ix_(train, bits)], codes[np.ix_(held, bits)]
    best: Choice | None = None
    for gamma in gammas:
        points = RBFPoints(X[train], gamma)
        K, K_held = points.gram(), points.kernel(X[held])
        for strength in strengths:
            margins = trial(K, y, K_held, strength)
            accuracy = float(np.mean((margins >= 0.0) == (y_held > 0)))
            if best is None or accuracy > best.accuracy:
                best = Choice(gamma, strength, accuracy)
    return best


def candidates(value: float, selected: bool, factors: Sequence[float]) -> list[float]:
    """The default times each factor, or the default alone where nothing is to be selected."""
    return [value * factor for factor in (factors if selected else (1.0,))]
