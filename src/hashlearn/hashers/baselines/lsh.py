"""Locality-sensitive hashing with random hyperplanes: a baseline that learns nothing but a mean. O(n · n_features)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hashlearn.core.checks import generator
from hashlearn.hashers.base import MAX_BITS
from hashlearn.hashers.baselines.function_hasher import FunctionHasher, column_means, linear_functions


class LSH(FunctionHasher):
    """Random hyperplanes (Charikar 2002): bits of x and x' agree with probability 1 − angle(x, x')/π.

    Parameters
    ----------
    n_bits : code length; any number of bits for any number of features
    centre : angles are seen from the mean of the training samples; False: from the origin, as in the publication
    random_state : seed or Generator, for the hyperplanes

    Deviations
    ----------
    The publication knows no data, so its hyperplanes pass through the origin. Non-negative features (pixels, counts)
    all lie in one corner there and most bits are nearly constant; comparisons of hashing methods centre. Hence the
    default.

    Attributes
    ----------
    hash_functions_ : the linear functions
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    M. Charikar: Similarity estimation techniques from rounding algorithms. STOC 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> LSH(n_bits=64, random_state=0).fit(X).encode(X[:2]).shape
    (2, 8)
    """

    def __init__(self, n_bits: int = 32, *, centre: bool = True, random_state: Any = None) -> None:
        self.n_bits = n_bits
        self.centre = centre
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> LSH:
        """Draw the hyperplanes and, if wanted, take the mean; y is ignored."""
        X = self._validated(X, reset=True)
        self._check_n_bits(MAX_BITS)  # nothing is learned from the samples, so a few will do
        weights = generator(self.random_state).standard_normal((X.shape[1], self.n_bits))
        origin = column_means(X) if self.centre else np.zeros(X.shape[1])
        self.hash_functions_ = linear_functions(weights, origin, "random hyperplanes")
        return self
