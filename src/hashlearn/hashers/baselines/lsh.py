"""Baselines that learn at most a mean or a threshold for each bit: random hyperplanes, and thresholds of features.

Fitting is one pass over X, O(n · n_features).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from hashlearn.core.checks import generator
from hashlearn.core.names import require_choice
from hashlearn.hash_functions.linear import linear_functions
from hashlearn.hashers.base import MAX_BITS, BaseHasher
from hashlearn.linalg.gram import column_means
from hashlearn.linalg.principal_axes import principal_axes

FEATURES = ("first", "pca")
THRESHOLDS = ("zero", "mean", "median")


@dataclass(eq=False, repr=False, kw_only=True)
class LSH(BaseHasher):
    """Random hyperplanes (Charikar 2002): bits of x and x' agree with probability 1 − angle(x, x')/π.

    Parameters
    ----------
    n_bits : code length; any number of bits for any number of features
    center : measure angles from the mean of the training samples; False: from the origin, as in the publication
    random_state : seed or Generator, for the hyperplanes

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

    center: bool = True

    def fit(self, X: Any, y: Any = None) -> LSH:
        """Draw the hyperplanes and, with ``center``, take the mean; y is ignored."""
        X = self._validated(X, reset=True)
        self._check_n_bits(MAX_BITS)  # nothing is learned from the samples, so a few are enough
        weights = generator(self.random_state).standard_normal((X.shape[1], self.n_bits))
        origin = column_means(X) if self.center else np.zeros(X.shape[1])
        self.hash_functions_ = linear_functions(weights, origin, "random hyperplanes")
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class SignCodes(BaseHasher):
    """One bit for each of n_bits features: 1 if the feature is at least its threshold.

    Parameters
    ----------
    n_bits : code length, at most n_features
    features : "first" (the first n_bits features as they come) or "pca" (the first n_bits principal components; these
        have mean 0, so the thresholds "zero" and "mean" are one)
    threshold : "zero" (plain sign), "mean" or "median" of the training samples. Medians make balanced bits
    random_state : seed or Generator, used by "pca" with more than 2,048 features only

    Attributes
    ----------
    hash_functions_ : the linear functions
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> SignCodes(n_bits=2).fit([[0.5, -1.0], [-2.0, 3.0]]).transform([[0.5, -1.0], [0.0, 3.0]])
    array([[1, 0],
           [1, 1]], dtype=uint8)
    """

    features: str = "first"
    threshold: str = "zero"

    def fit(self, X: Any, y: Any = None) -> SignCodes:
        """Take the thresholds; y is ignored."""
        require_choice(self.features, "features", FEATURES)
        require_choice(self.threshold, "threshold", THRESHOLDS)
        X, _ = self._training(X)
        n_features = X.shape[1]
        if self.n_bits > n_features:
            raise ValueError(
                f"n_bits={self.n_bits} needs as many features, got n_features={n_features}; ask for {n_features} bits "
                "at most, or use LSH, which makes any number"
            )
        if self.features == "pca":
            axes = principal_axes(X, self.n_bits, generator(self.random_state))
            weights, origin, values = axes.directions, axes.center * axes.scale, axes.scores(X) * axes.scale
        else:
            weights, origin = np.eye(n_features, self.n_bits), np.zeros(n_features)
            values = X[:, : self.n_bits].toarray() if issparse(X) else X[:, : self.n_bits]
        functions = linear_functions(weights, origin, f"{self.threshold} threshold, {self.features} features")
        if self.threshold == "mean":
            functions.intercepts -= column_means(values)
        elif self.threshold == "median":
            functions.intercepts -= np.median(values, axis=0)
        self.hash_functions_ = functions
        return self
