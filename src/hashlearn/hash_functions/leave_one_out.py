"""``alpha="loo"``: the weight of kernel ridge regression whose leave-one-out errors are smallest.

Of f = K c with c = (K + αI)⁻¹ y the error at row i, had it been left out, is c_i / [(K + αI)⁻¹]_ii, so one Cholesky
factorisation judges an α by every row and bit. At most 1,000 rows are drawn for it: the best α is a matter of how noisy
the codes are and hardly of n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from hashlearn.hash_functions.batch_invariant import Rows
from hashlearn.hash_functions.codewords import FittedTo
from hashlearn.hash_functions.kernels import RBFPoints

ALPHAS = (0.1, 0.03, 0.3, 0.01, 1.0)  # the first of equals wins
MOST_ROWS = 1000
FEWEST_ROWS = 20


def leave_one_out_errors(K: NDArray[np.float64], y: NDArray[np.floating], alpha: float) -> NDArray[np.float64]:
    """y_i − f_i(x_i), where f_i was fitted to all rows but i; the shape of y.

    >>> leave_one_out_errors(np.eye(2), np.array([[1.0], [-1.0]]), 0.5)  # rows that know nothing of each other
    array([[ 1.],
           [-1.]])
    """
    A = K + alpha * np.eye(len(K))
    inverse = cho_solve(cho_factor(A, lower=True, overwrite_a=True, check_finite=False), np.eye(len(K)))
    return (inverse @ y) / inverse.diagonal()[:, None]


def alpha_by_leave_one_out(X: Rows, codes: FittedTo, gamma: float, rng: np.random.Generator) -> float | None:
    """The α of `ALPHAS` with the smallest mean squared error; None where there is too little to judge by."""
    n = X.shape[0]
    if n < FEWEST_ROWS or codes.shape[1] == 0:
        return None
    rows = np.arange(n) if n <= MOST_ROWS else np.sort(rng.choice(n, MOST_ROWS, replace=False))
    K, y = RBFPoints(X[rows], gamma).gram(), codes[rows].astype(np.float64)
    return min(ALPHAS, key=lambda alpha: float(np.mean(leave_one_out_errors(K, y, alpha) ** 2)))
