"""What the two methods of Mukherjee et al. (2015) share: codes inferred all bits at once in [0, 1], then rounded.

Codes Z ∈ {0, 1} have the Hamming distances D = Z(1 − Z)ᵀ + (1 − Z)Zᵀ, which should be near the distances S. With signs
s = 2Z − 1 in [−1, 1] this is D = (n_bits − s sᵀ)/2, for relaxed codes too, and S = n_bits (1 − Y)/2 for the target Y of
eq. (3): ‖S − D‖ is ‖s sᵀ − n_bits · Y‖/2. Y is an operator of low rank, so nothing here is n × n.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from hashlearn import bqp
from hashlearn.core.arrays import FloatArray
from hashlearn.core.checks import generator
from hashlearn.core.threads import one_blas_thread
from hashlearn.hash_functions import as_hash_function
from hashlearn.hashers.base import BitPredictor
from hashlearn.inference import start_codes
from hashlearn.inference.objective import objective
from hashlearn.targets import as_target


class RelaxedTwoStep(BitPredictor):
    """Start, relaxed inference, rounding at ½, hash functions. A subclass provides ``_relaxed_signs``."""

    target: Any
    init: Any
    random_state: Any
    n_jobs: int | None

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
            self.objective_ = objective(similarity, self.codes_.astype(np.float64))
        self.hash_functions_ = hash_function.fit(X, self.codes_, rng, n_jobs=self.n_jobs)
        return self
