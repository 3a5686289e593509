"""ALM hashing: all codes at once by an augmented Lagrangian with an auxiliary distance matrix, eq. (23).

The auxiliary matrix and the multipliers are n × n, but both are combinations of the target and of inner products of
earlier codes, so only the coefficients are stored. A gradient costs O(n · n_bits · (rank + rounds · n_bits)).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.hashers.baselines.relaxed_two_step import RelaxedTwoStep
from hashlearn.inference.objective import objective


@dataclass(eq=False, repr=False)
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
    objectives_ : of the relaxed codes, before the first round and after each
    objective_ : of ``codes_``, eq. (3) as the mean squared error of inner products over n_bits
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

    n_bits: int = 32
    _: KW_ONLY
    target: Any = "distance"
    hash_function: Any = "linear_svm"
    init: Any = "pca"
    penalty: float = 0.3
    penalty_growth: float = 2.0
    max_iter: int = 10
    n_steps: int = 20
    random_state: Any = None
    n_jobs: int | None = None

    def _relaxed_signs(self, target: bqp.Operator, start: FloatArray) -> FloatArray:
        self._require_whole("max_iter", "n_steps")
        self._require_positive("penalty", "penalty_growth")
        state = AuxiliaryMatrix(target, self.n_bits)
        signs, penalty = start, self.penalty
        state.meet(signs, penalty)
        values = [objective(target, signs)]
        for _ in range(self.max_iter):
            signs = np.clip(nearest_products(state, penalty, signs, self.n_steps), -1.0, 1.0)
            state.meet(signs, penalty)
            values.append(objective(target, signs))
            penalty *= self.penalty_growth
        self.objectives_, self.n_iter_ = np.array(values), self.max_iter
        return signs


class AuxiliaryMatrix:
    """The auxiliary matrix and the multipliers, in terms of inner products: D = (n_bits − A)/2 with A → s sᵀ.

    With T = n_bits · Y eq. (23) is min ‖A − T‖² with A = s sᵀ. From multipliers of 0, minimizing over A gives
    A = (2T + μ s sᵀ)/(2 + μ), and the multipliers become 2(T − A); in later rounds therefore A ← (2A + μ s sᵀ)/(2 + μ),
    and the multipliers are 2(T − A) again.
    """

    def __init__(self, target: bqp.Operator, n_bits: int) -> None:
        self.target, self.n_bits = target, n_bits
        self.of_target = 1.0  # A = of_target · T + Σ of_products[t] s_t s_tᵀ
        self.products: list[FloatArray] = []
        self.of_products: list[float] = []

    def meet(self, signs: FloatArray, penalty: float) -> None:
        """Minimize over A, then update the multipliers, for codes ``signs``."""
        share = 2.0 / (2.0 + penalty)
        self.of_target *= share
        self.of_products = [*(share * c for c in self.of_products), 1.0 - share]
        self.products.append(signs)

    def attractor(self, penalty: float, V: FloatArray) -> FloatArray:
        """(A + multipliers / μ) @ V: the matrix whose nearest s sᵀ the codes look for."""
        share = 2.0 / penalty
        result = (share + (1.0 - share) * self.of_target) * self.n_bits * (self.target @ V)
        for c, s in zip(self.of_products, self.products, strict=True):
            result += (1.0 - share) * c * (s @ (s.T @ V))
        return result


def nearest_products(state: AuxiliaryMatrix, penalty: float, start: FloatArray, n_steps: int) -> FloatArray:
    """Local minimizer of ¼‖s sᵀ − R‖² over real s by L-BFGS, R the attractor; its gradient is (s sᵀ − R)s."""
    shape = start.shape
    size = float(shape[0] * shape[0])  # entries are then of order 1 for any n

    def value_and_slope(flat: FloatArray) -> tuple[float, FloatArray]:
        s = flat.reshape(shape)
        gram, R_s = s.T @ s, state.attractor(penalty, s)
        value = 0.25 * float(np.sum(gram * gram)) - 0.5 * float(np.sum(s * R_s))  # up to ¼‖R‖²
        return value / size, ((s @ gram - R_s) / size).ravel()

    options = {"maxiter": n_steps, "gtol": 1e-12, "ftol": 1e-12}
    return minimize(value_and_slope, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(shape)
