"""Locality-sensitive hashing with random hyperplanes: a baseline that learns nothing but a mean. O(n · n_features)."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from hashlearn.core.checks import generator
from hashlearn.core.names import deprecated
from hashlearn.hash_functions.linear import linear_functions
from hashlearn.hashers.base import MAX_BITS, BaseHasher
from hashlearn.linalg.gram import column_means


@dataclass(eq=False, repr=False)
class LSH(BaseHasher):
    """Random hyperplanes (Charikar 2002): bits of x and x' agree with probability 1 − angle(x, x')/π.

    Parameters
    ----------
    n_bits : code length; any number of bits for any number of features
    center : measure angles from the mean of the training samples; False: from the origin, as in the publication
    random_state : seed or Generator, for the hyperplanes
    centre : deprecated spelling of ``center``

    Deviations
    ----------
    The hyperplanes of the publication pass through the origin. Non-negative features (pixels, counts) then lie on one
    side of most of them, and most bits are nearly constant. Comparisons of hashing methods center, and so does the
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

    n_bits: int = 32
    _: KW_ONLY
    center: bool = True
    random_state: Any = None
    centre: bool | None = None

    def fit(self, X: Any, y: Any = None) -> LSH:
        """Draw the hyperplanes and, if wanted, take the mean; y is ignored."""
        X = self._validated(X, reset=True)
        self._check_n_bits(MAX_BITS)  # nothing is learned from the samples, so a few are enough
        weights = generator(self.random_state).standard_normal((X.shape[1], self.n_bits))
        center = self.center
        if self.centre is not None:
            deprecated("LSH(centre=...)", "center=...")
            center = self.centre
        origin = column_means(X) if center else np.zeros(X.shape[1])
        self.hash_functions_ = linear_functions(weights, origin, "random hyperplanes")
        return self
