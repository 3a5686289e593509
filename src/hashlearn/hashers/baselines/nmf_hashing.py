"""NMF hashing and ALM hashing, both of Mukherjee et al. (2015): all bits inferred at once in [0, 1], then rounded.

Codes Z ∈ {0, 1} have the Hamming distances D = Z(1 − Z)ᵀ + (1 − Z)Zᵀ, which should be near the distances S. With signs
s = 2Z − 1 in [−1, 1] this is D = (n_bits − s sᵀ)/2, for relaxed codes too, and S = n_bits (1 − Y)/2 for the target Y of
eq. (3): ‖S − D‖ is ‖s sᵀ − n_bits · Y‖/2. Y is an operator of low rank, so nothing here is n × n.

NMF hashing uses multiplicative updates of a constrained non-negative factorization, eq. (24). An update is one product
with the target, O(n · n_bits · (n_bits + rank)). ALM hashing uses an augmented Lagrangian with an auxiliary distance
matrix, eq. (23). The auxiliary matrix and the multipliers are combinations of the target and of inner products of
earlier codes, so only the coefficients are stored. A gradient costs O(n · n_bits · (rank + rounds · n_bits)).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions import as_hash_function
from hashlearn.hashers.base import BitPredictor
from hashlearn.inference import start_codes
from hashlearn.inference.objective import frobenius_square, mean_square
from hashlearn.targets import as_target

START = 0.9  # start codes are ±this: multiplication cannot change a relaxed code of 0 or 1
INSIDE = 1.0 - 1e-12  # largest magnitude of relaxed signs
LARGEST_STEP, SMALLEST_STEP = 1e4, 1e-4


@dataclass(eq=False, repr=False, kw_only=True)
class RelaxedTwoStep(BitPredictor):
    """Start, relaxed inference, rounding at ½, hash functions. A subclass provides ``_relaxed_signs``."""

    target: Any = "distance"
    hash_function: Any = "linear_svm"
    init: Any = "pca"

    @abstractmethod
    def _relaxed_signs(self, target: bqp.Operator, start: FloatArray) -> FloatArray:
        """Signs in [−1, 1], (n, n_bits), from a start of ±1."""

    def fit(self, X: Any, y: Any = None) -> RelaxedTwoStep:
        """Infer codes and learn hash functions; y is ignored: the method preserves distances."""
        hash_function = as_hash_function(self.hash_function)
        X, _ = self._training(X)
        target = as_target(self.target, None)
        if target.needs_labels:
            raise ValueError(
                f"target {target.name!r} needs labels, and {type(self).__name__} is unsupervised; choose 'distance', "
                "'thresholded_distance' or a similarity, or use TwoStepHasher"
            )
        rng = generator(self.random_state)
        similarity = target.for_bits(self.n_bits).build(X, None, rng)
        start = start_codes(self.init, X, self.n_bits, rng)
        with one_blas_thread():
            signs = self._relaxed_signs(similarity, start)
            self.codes_ = np.where(signs >= 0.0, 1, -1).astype(np.int8)
        self.hash_functions_ = hash_function.fit(X, self.codes_, rng, n_jobs=self.n_jobs)
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class NMFHashing(RelaxedTwoStep):
    """NMF hashing (Mukherjee et al. 2015), unsupervised two-step hashing.

    Relaxed codes Z ∈ [0, 1] and their complements W = 1 − Z factorize the distances, S ≈ ZWᵀ + WZᵀ = D. The gradient's
    negative and positive parts, P = SW + DZ and Q = DW + SZ, give the update Z ← ZP / (ZP + WQ), elementwise, under
    which Z and W stay non-negative with sum 1. Codes are Z rounded at ½; linear support vector machines predict them.

    Parameters
    ----------
    n_bits : code length
    target : "distance" (squared, of centered rows of unit length), "thresholded_distance", a target object that needs
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
    n_iter_ : updates done
    objectives_ : of the relaxed codes, before the first update and after each; never rising
    hash_functions_ : the fitted predictors
    n_features_in_, feature_names_in_ : as in scikit-learn

    Deviations
    ----------
    The paper states the factorization S_v = M H Z_v with H made of 1 − Z_v; how H follows Z_v between updates is left
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

    max_iter: int = 200
    tol: float = 1e-4

    def _relaxed_signs(self, target: bqp.Operator, start: FloatArray) -> FloatArray:
        self._require_whole("max_iter")
        self._require_positive("tol")
        square, T_1 = frobenius_square(target), target @ np.ones(len(start))
        signs, step = START * start, 1.0
        T_s = target @ signs
        values = [mean_square(signs.T @ signs, float(np.sum(signs * T_s)), square, len(signs))]
        for n_iter in range(1, self.max_iter + 1):
            self.n_iter_ = n_iter
            log_ratio = update_log_ratio(signs, T_s, T_1)
            while True:
                # Z/W is multiplied by (P/Q)^step, and Z/W = (1 + s)/(1 − s) = exp(2 artanh s).
                trial = np.tanh(np.arctanh(signs) + 0.5 * step * log_ratio)
                trial = np.clip(trial, -INSIDE, INSIDE)
                T_trial = target @ trial
                value = mean_square(trial.T @ trial, float(np.sum(trial * T_trial)), square, len(trial))
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


@dataclass(eq=False, repr=False, kw_only=True)
class ALMHashing(RelaxedTwoStep):
    """ALM hashing (Mukherjee et al. 2015), unsupervised two-step hashing.

    min ‖S − D‖² over relaxed codes in [0, 1] and an auxiliary matrix D, subject to D being their Hamming distances. In
    each round codes minimize the augmented Lagrangian without regard to the interval and are then projected onto it;
    D has a closed form; multipliers and penalty are updated. Codes are rounded at ½ in the end; linear support vector
    machines predict them.

    Parameters
    ----------
    n_bits : code length
    target : "distance" (squared, of centered rows of unit length), "thresholded_distance", a target object that needs
        no labels, or your own n × n similarity
    hash_function : how bits are predicted, as in `TwoStepHasher`; the publication has linear support vector machines
    init : codes to begin with: "pca" (the publication's: components thresholded at their mean), "itq", "random", array
    penalty : μ in the first round
    penalty_growth : factor of μ from round to round
    max_iter : rounds
    n_steps : L-BFGS iterations for the codes in a round
    random_state : seed or Generator
    n_jobs : threads for fitting hash functions; None or -1 for all cores

    Attributes
    ----------
    codes_ : int8 ±1 (n_samples, n_bits), the inferred codes of the training samples
    n_iter_ : rounds done
    hash_functions_ : the fitted predictors
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    L. Mukherjee, S. N. Ravi, V. K. Ithapu, T. Holmes, V. Singh: An NMF perspective on binary hashing. ICCV 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> hasher = ALMHashing(n_bits=8, random_state=0).fit(X[:500])
    >>> hasher.encode(X[:2]).shape
    (2, 1)
    """

    penalty: float = 0.3
    penalty_growth: float = 2.0
    max_iter: int = 10
    n_steps: int = 20

    def _relaxed_signs(self, target: bqp.Operator, start: FloatArray) -> FloatArray:
        self._require_whole("max_iter", "n_steps")
        self._require_positive("penalty", "penalty_growth")
        auxiliary = AuxiliaryMatrix(target, self.n_bits)
        signs, penalty = start, self.penalty
        auxiliary.meet(signs, penalty)
        self.n_iter_ = self.max_iter
        for _ in range(self.max_iter):
            signs = np.clip(nearest_products(auxiliary, penalty, signs, self.n_steps), -1.0, 1.0)
            auxiliary.meet(signs, penalty)
            penalty *= self.penalty_growth
        return signs


class AuxiliaryMatrix:
    """The auxiliary matrix and the multipliers, in terms of inner products: D = (n_bits − A)/2 with A → s sᵀ.

    With T = n_bits · Y eq. (23) is min ‖A − T‖² with A = s sᵀ. From multipliers of 0, minimizing over A gives
    A = (2T + μ s sᵀ)/(2 + μ), and the multipliers become 2(T − A); in later rounds therefore A ← (2A + μ s sᵀ)/(2 + μ),
    and the multipliers are 2(T − A) again.
    """

    def __init__(self, target: bqp.Operator, n_bits: int) -> None:
        self.target, self.n_bits = target, n_bits
        self.of_target = 1.0  # A = of_target · T + Σ_t c_t s_t s_tᵀ
        self.products: list[tuple[float, FloatArray]] = []  # (c_t, s_t)

    def meet(self, signs: FloatArray, penalty: float) -> None:
        """Minimize over A, then update the multipliers, for codes ``signs``."""
        share = 2.0 / (2.0 + penalty)
        self.of_target *= share
        self.products = [*((share * c, s) for c, s in self.products), (1.0 - share, signs)]

    def attractor(self, penalty: float, V: FloatArray) -> FloatArray:
        """(A + multipliers / μ) @ V: the matrix whose nearest s sᵀ the codes look for."""
        share = 2.0 / penalty
        result = (share + (1.0 - share) * self.of_target) * self.n_bits * (self.target @ V)
        for c, s in self.products:
            result += (1.0 - share) * c * (s @ (s.T @ V))
        return result


def nearest_products(auxiliary: AuxiliaryMatrix, penalty: float, start: FloatArray, n_steps: int) -> FloatArray:
    """Local minimizer of ¼‖s sᵀ − R‖² over real s by L-BFGS, R the attractor; its gradient is (s sᵀ − R)s."""
    shape = start.shape
    size = float(shape[0] * shape[0])  # entries are then of order 1 for any n

    def value_and_slope(flat: FloatArray) -> tuple[float, FloatArray]:
        s = flat.reshape(shape)
        gram, R_s = s.T @ s, auxiliary.attractor(penalty, s)
        value = 0.25 * float(np.sum(gram * gram)) - 0.5 * float(np.sum(s * R_s))  # up to ¼‖R‖²
        return value / size, ((s @ gram - R_s) / size).ravel()

    options = {"maxiter": n_steps, "gtol": 1e-12, "ftol": 1e-12}
    return minimize(value_and_slope, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(shape)
