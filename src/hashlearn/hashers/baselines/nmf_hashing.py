"""NMF hashing: all codes at once by multiplicative updates, as a constrained non-negative factorisation, eq. (24).

An update is one product with the target, O(n · n_bits · (n_bits + rank)).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import positive, whole_number
from hashlearn.hashers.baselines.relaxed_two_step import RelaxedTwoStep
from hashlearn.inference.objective import frobenius_square

START = 0.9  # codes begin at this share of ±1: what is 0 or 1 stays so under multiplication
INSIDE = 1.0 - 1e-12  # nor may they arrive there
LARGEST_STEP, SMALLEST_STEP = 1e4, 1e-4


class NMFHashing(RelaxedTwoStep):
    """NMF hashing (Mukherjee et al. 2015), unsupervised two-step hashing.

    Relaxed codes Z ∈ [0, 1] and their complements W = 1 − Z factorise the distances, S ≈ ZWᵀ + WZᵀ = D. The gradient's
    negative and positive parts, P = SW + DZ and Q = DW + SZ, give the update Z ← ZP / (ZP + WQ), elementwise, under
    which Z and W stay non-negative with sum 1. Codes are Z rounded at ½; linear support vector machines predict them.

    Parameters
    ----------
    n_bits : code length
    target : "distance" (squared, of centred rows of unit length), "thresholded_distance", a target object that needs
        no labels, or your own n × n similarity
    hash_function : how bits are predicted, as in `TwoStepHasher`; the publication has linear support vector machines
    init : codes to begin with: "pca" (the publication's: components thresholded at their mean), "itq", "random", array
    max_iter : limit on the updates
    tol : stop when an update lowers the objective by less than this, relatively
    random_state : seed or Generator
    n_jobs : threads for fitting hash functions; None or -1 for all cores

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), the inferred codes of the training samples
    objectives_ : of the relaxed codes, before the first update and after each; never rising
    objective_ : of ``codes_``, eq. (3) as the mean squared error of inner products over n_bits
    hash_functions_ : the fitted predictors
    n_features_in_, feature_names_in_ : as in scikit-learn

    Deviations
    ----------
    The paper states the factorisation S_v = M H Z_v with H made of 1 − Z_v; how H follows Z_v between updates is left
    open. Here H is never free: the update is that of the objective with H replaced. Its factor P/Q is raised to a power
    that grows while the objective falls and shrinks otherwise, since plain updates (power 1) take thousands.

    References
    ----------
    L. Mukherjee, S. N. Ravi, V. K. Ithapu, T. Holmes, V. Singh: An NMF perspective on binary hashing. ICCV 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> hasher = NMFHashing(n_bits=8, random_state=0).fit(X[:500])
    >>> hasher.encode(X[:2]).shape
    (2, 1)
    """

    def __init__(
        self,
        n_bits: int = 32,
        *,
        target: Any = "distance",
        hash_function: Any = "linear_svm",
        init: Any = "pca",
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.target = target
        self.hash_function = hash_function
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _relaxed_signs(self, target: bqp.Operator, start: FloatArray) -> FloatArray:
        whole_number(self.max_iter, "max_iter", least=1)
        positive(self.tol, "tol")
        square, T_1 = frobenius_square(target), target @ np.ones(len(start))
        signs, step = START * start, 1.0
        T_s = target @ signs
        values = [_objective(signs, T_s, square)]
        for n_iter in range(1, self.max_iter + 1):
            self.n_iter_ = n_iter
            log_ratio = update_log_ratio(signs, T_s, T_1)
            while True:
                # Z/W is multiplied by (P/Q)^step, and Z/W = (1 + s)/(1 − s) = exp(2 artanh s).
                trial = np.tanh(np.arctanh(signs) + 0.5 * step * log_ratio)
                trial = np.clip(trial, -INSIDE, INSIDE)
                T_trial = target @ trial
                value = _objective(trial, T_trial, square)
                if value <= values[-1] or step <= SMALLEST_STEP:
                    break
                step *= 0.5
            if value > values[-1]:
                break
            signs, T_s, step = trial, T_trial, min(2.0 * step, LARGEST_STEP)
            values.append(value)
            if values[-2] - value <= self.tol * values[-2]:
                break
        self.objectives_ = np.array(values)
        return signs


def update_log_ratio(signs: FloatArray, T_s: FloatArray, T_1: FloatArray) -> FloatArray:
    """log(P/Q), where T_s and T_1 are the target's products with signs and with ones.

    With M = D − S, P − Q = Ms and P + Q = (S + D)1 in every column, so no n × n array is needed.
    """
    n, n_bits = signs.shape
    M_s = 0.5 * (n_bits * T_s - signs @ (signs.T @ signs))
    S_1, D_1 = 0.5 * n_bits * (n - T_1), 0.5 * (n_bits * n - signs @ signs.sum(axis=0))
    whole = (S_1 + D_1)[:, None]
    ratio = np.divide(M_s, whole, out=np.zeros_like(M_s), where=whole > 0.0)
    return 2.0 * np.arctanh(np.clip(ratio, -INSIDE, INSIDE))


def _objective(signs: FloatArray, T_s: FloatArray, target_square: float) -> float:
    """As `inference.objective.objective`, with the product at hand."""
    n, n_bits = signs.shape
    gram = signs.T @ signs
    return (float(np.sum(gram * gram)) / n_bits**2 - 2.0 * float(np.sum(signs * T_s)) / n_bits + target_square) / n / n
