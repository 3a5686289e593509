"""A toy hasher: random hyperplanes through the mean."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from hashlearn.core.checks import generator
from hashlearn.hash_functions.linear import linear_functions
from hashlearn.hashers.base import MAX_BITS, BaseHasher
from hashlearn.linalg.gram import column_means


@dataclass(eq=False, repr=False)
class ToyHasher(BaseHasher):
    """Random hyperplanes through the mean of the samples.

    Parameters
    ----------
    n_bits : code length
    random_state : seed or Generator
    """

    n_bits: int = 32
    _: KW_ONLY
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> ToyHasher:
        """Draw the hyperplanes; y is ignored."""
        X = self._validated(X, reset=True)
        self._check_n_bits(MAX_BITS)
        weights = generator(self.random_state).standard_normal((X.shape[1], self.n_bits))
        self.hash_functions_ = linear_functions(weights, column_means(X), "toy hyperplanes")
        return self
